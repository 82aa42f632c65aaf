-- Prediction rows of one part: features from values known at or before the row, remaining times from episodes.
-- Every stay has one entry per moment, so windows have no ties and no arbitrary order.
WITH times AS (
    SELECT g.stay_id, g.at_s
    FROM grid AS g
    JOIN part_cohort AS c ON c.stay_id = g.stay_id
    WHERE g.at_s < c.exit_s AND g.at_s <= $horizon_s
),
moments AS (
    SELECT stay_id, known_s AS at_s, value AS creatinine, NULL AS urine, NULL AS kilograms, FALSE AS is_row
    FROM part_creatinine
    UNION ALL
    SELECT stay_id, known_s, NULL, CASE WHEN $urine_as_rate THEN volume / lasts_hours ELSE volume END, NULL, FALSE
    FROM part_urine
    UNION ALL
    SELECT stay_id, known_s, NULL, NULL, kilograms, FALSE
    FROM part_weights
    UNION ALL
    SELECT stay_id, at_s, NULL, NULL, NULL, TRUE
    FROM times
),
-- Values become whole millionths: their sums are exact, so no feature depends on the order of addition.
timeline AS (
    SELECT
        stay_id,
        at_s,
        CAST(round(avg(creatinine) * 1e6) AS BIGINT) AS creatinine,
        CASE WHEN count(creatinine) > 0 THEN at_s END AS creatinine_s,
        CAST(round(avg(urine) * 1e6) AS BIGINT) AS urine,
        CASE WHEN count(urine) > 0 THEN at_s END AS urine_s,
        avg(kilograms) AS kilograms,
        bool_or(is_row) AS is_row
    FROM moments
    GROUP BY stay_id, at_s
),
summarized AS (
    SELECT
        stay_id,
        at_s,
        is_row,
        last_value(kilograms IGNORE NULLS) OVER past AS weight,
        CASE
            WHEN $rolling_baseline THEN min(creatinine) OVER (
                PARTITION BY stay_id ORDER BY at_s RANGE BETWEEN $baseline_s PRECEDING AND CURRENT ROW
            )
            ELSE coalesce(
                min(creatinine) FILTER (WHERE at_s BETWEEN -$baseline_s AND 0) OVER past,
                arg_min(creatinine, at_s) FILTER (WHERE at_s > 0) OVER past
            )
        END AS baseline_creatinine,
        count(creatinine) OVER recent AS creatinine_count,
        sum(creatinine) OVER recent AS creatinine_sum,
        sum(creatinine_s) OVER recent AS creatinine_sum_s,
        sum(creatinine_s * creatinine_s) OVER recent AS creatinine_sum_ss,
        sum(CAST(creatinine_s AS HUGEINT) * creatinine) OVER recent AS creatinine_sum_sv,
        min(creatinine) OVER recent AS creatinine_min,
        max(creatinine) OVER recent AS creatinine_max,
        last_value(creatinine IGNORE NULLS) OVER recent AS creatinine_last,
        count(urine) OVER recent AS urine_count,
        sum(urine) OVER recent AS urine_sum,
        sum(urine_s) OVER recent AS urine_sum_s,
        sum(urine_s * urine_s) OVER recent AS urine_sum_ss,
        sum(CAST(urine_s AS HUGEINT) * urine) OVER recent AS urine_sum_sv,
        min(urine) OVER recent AS urine_min,
        max(urine) OVER recent AS urine_max,
        last_value(urine IGNORE NULLS) OVER recent AS urine_last
    FROM timeline
    WINDOW
        past AS (PARTITION BY stay_id ORDER BY at_s RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW),
        recent AS (PARTITION BY stay_id ORDER BY at_s RANGE BETWEEN $window_s PRECEDING AND CURRENT ROW)
),
scaled AS (
    SELECT
        *,
        1e6 AS unit,
        CASE WHEN $urine_per_kilogram THEN weight ELSE 1 END * 1e6 AS urine_unit,
        -- Least squares, per hour; both differences are whole numbers.
        CASE
            WHEN creatinine_count >= 2
                THEN 3600 * (creatinine_count * creatinine_sum_sv - creatinine_sum_s * creatinine_sum)
                    / (creatinine_count * creatinine_sum_ss - creatinine_sum_s * creatinine_sum_s)
        END AS creatinine_slope,
        CASE
            WHEN urine_count >= 2
                THEN 3600 * (urine_count * urine_sum_sv - urine_sum_s * urine_sum)
                    / (urine_count * urine_sum_ss - urine_sum_s * urine_sum_s)
        END AS urine_slope
    FROM summarized
    WHERE is_row
),
creatinine_episodes AS (
    SELECT stay_id, onset_s, end_s FROM part_episodes WHERE endpoint = 'creatinine'
),
urine_episodes AS (
    SELECT stay_id, onset_s, end_s FROM part_episodes WHERE endpoint = 'urine'
),
aimed AS (
    SELECT
        s.*,
        cl.stay_id IS NOT NULL AND (cl.end_s IS NULL OR cl.end_s > s.at_s) AS creatinine_present,
        ul.stay_id IS NOT NULL AND (ul.end_s IS NULL OR ul.end_s > s.at_s) AS urine_present,
        CASE WHEN creatinine_present THEN s.at_s ELSE cn.onset_s END AS creatinine_onset_s,
        CASE WHEN urine_present THEN s.at_s ELSE un.onset_s END AS urine_onset_s
    FROM scaled AS s
    ASOF LEFT JOIN creatinine_episodes AS cl ON cl.stay_id = s.stay_id AND s.at_s >= cl.onset_s
    ASOF LEFT JOIN creatinine_episodes AS cn ON cn.stay_id = s.stay_id AND s.at_s < cn.onset_s
    ASOF LEFT JOIN urine_episodes AS ul ON ul.stay_id = s.stay_id AND s.at_s >= ul.onset_s
    ASOF LEFT JOIN urine_episodes AS un ON un.stay_id = s.stay_id AND s.at_s < un.onset_s
)
SELECT
    c.subject_id,
    a.stay_id,
    CAST(c.male AS FLOAT) AS male,
    CAST(c.age AS FLOAT) AS age,
    CAST(a.weight AS FLOAT) AS weight,
    CAST(c.chronic_renal_failure AS FLOAT) AS chronic_renal_failure,
    CAST(a.baseline_creatinine / a.unit AS FLOAT) AS baseline_creatinine,
    CAST(a.at_s / 3600 AS FLOAT) AS elapsed_hours,
    CAST(a.creatinine_count AS FLOAT) AS creatinine_count,
    CAST(a.creatinine_sum / a.creatinine_count / a.unit AS FLOAT) AS creatinine_mean,
    CAST(a.creatinine_min / a.unit AS FLOAT) AS creatinine_min,
    CAST(a.creatinine_max / a.unit AS FLOAT) AS creatinine_max,
    CAST(a.creatinine_last / a.unit AS FLOAT) AS creatinine_last,
    CAST(a.creatinine_slope / a.unit AS FLOAT) AS creatinine_slope,
    CAST(a.urine_count AS FLOAT) AS urine_count,
    CAST(a.urine_sum / a.urine_count / a.urine_unit AS FLOAT) AS urine_mean,
    CAST(a.urine_min / a.urine_unit AS FLOAT) AS urine_min,
    CAST(a.urine_max / a.urine_unit AS FLOAT) AS urine_max,
    CAST(a.urine_last / a.urine_unit AS FLOAT) AS urine_last,
    CAST(a.urine_slope / a.urine_unit AS FLOAT) AS urine_slope,
    CAST(a.creatinine_count = 0 AS FLOAT) AS creatinine_missing,
    CAST(a.urine_count = 0 AS FLOAT) AS urine_missing,
    CAST(a.creatinine_count >= 2 AS FLOAT) AS creatinine_slope_available,
    CAST(a.urine_count >= 2 AS FLOAT) AS urine_slope_available,
    a.creatinine_present,
    a.urine_present,
    a.creatinine_onset_s IS NOT NULL AS creatinine_event,
    a.urine_onset_s IS NOT NULL AS urine_event,
    (coalesce(a.creatinine_onset_s, c.exit_s) - a.at_s) / 3600 AS creatinine_time,
    (coalesce(a.urine_onset_s, c.exit_s) - a.at_s) / 3600 AS urine_time,
    (c.exit_s - a.at_s) / 3600 AS censoring_time
FROM aimed AS a
JOIN part_cohort AS c ON c.stay_id = a.stay_id
ORDER BY a.stay_id, a.at_s
