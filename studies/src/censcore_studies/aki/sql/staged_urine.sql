-- Volumes over trailing windows, both ends included. A record stands for the time since the one before it,
-- so a window covers the summed durations of its records, and its rate is volume / weight / hours covered.
WITH charted AS (
    SELECT
        c.part,
        c.stay_id,
        date_diff('second', c.intime, u.charttime) AS at_s,
        date_diff('second', c.intime, u.storetime) AS stored_s,
        u.volume
    FROM cohort AS c
    JOIN urine AS u ON u.stay_id = c.stay_id AND u.charttime BETWEEN c.intime AND c.exit_time
),
lasting AS (
    SELECT
        *,
        coalesce(at_s - lag(at_s) OVER (PARTITION BY stay_id ORDER BY at_s), $first_urine_s) AS lasts_s
    FROM charted
),
weighed AS (
    SELECT l.*, coalesce(w.kilograms, f.kilograms, $assumed_weight) AS kilograms
    FROM lasting AS l
    ASOF LEFT JOIN stay_weights AS w ON w.stay_id = l.stay_id AND w.holds_from_s <= l.at_s
    -- Before the first weight that one counts.
    LEFT JOIN (SELECT stay_id, arg_min(kilograms, at_s) AS kilograms FROM stay_weights GROUP BY stay_id) AS f
        ON f.stay_id = l.stay_id
),
summed AS (
    SELECT
        *,
        sum(lasts_s) OVER short AS short_covered_s,
        sum(volume) OVER middle AS middle_volume,
        sum(lasts_s) OVER middle AS middle_covered_s,
        sum(volume) OVER long AS long_volume,
        sum(lasts_s) OVER long AS long_covered_s
    FROM weighed
    WINDOW
        short AS (PARTITION BY stay_id ORDER BY at_s RANGE BETWEEN $short_s PRECEDING AND CURRENT ROW),
        middle AS (PARTITION BY stay_id ORDER BY at_s RANGE BETWEEN $middle_s PRECEDING AND CURRENT ROW),
        long AS (PARTITION BY stay_id ORDER BY at_s RANGE BETWEEN $long_s PRECEDING AND CURRENT ROW)
),
rated AS (
    SELECT
        *,
        CASE
            WHEN middle_covered_s >= $middle_s
                THEN round(middle_volume / kilograms / (middle_covered_s / 3600), $urine_rate_decimals)
        END AS middle_rate,
        CASE
            WHEN long_covered_s >= $long_s
                THEN round(long_volume / kilograms / (long_covered_s / 3600), $urine_rate_decimals)
        END AS long_rate,
        kilograms IS NOT NULL
        AND (
            NOT $urine_needs_short_window OR (short_covered_s >= $short_s AND short_covered_s < $middle_s)
        ) AS staged
    FROM summed
)
SELECT
    part,
    stay_id,
    at_s,
    stored_s,
    volume,
    lasts_s / 3600 AS lasts_hours,
    middle_rate AS rate,
    staged,
    staged
    AND at_s >= $grace_s
    AND coalesce(
        middle_rate < $urine_rate
        OR (NOT $urine_strict AND middle_rate = $urine_rate)
        OR (
            $count_stage_3
            AND (long_rate < $stage_3_urine_rate OR (NOT $urine_strict AND long_rate = $stage_3_urine_rate))
        ),
        FALSE
    ) AS meets_criterion
FROM rated
ORDER BY part, stay_id, at_s
