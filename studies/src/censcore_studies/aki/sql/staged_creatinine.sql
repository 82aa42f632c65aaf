-- Each value against its baseline; "before" is strictly before, the far end of a window counts.
-- Ratios and rises are rounded to six decimals, so that 2.0 times a printed value is met by the printed double.
WITH compared AS (
    SELECT
        *,
        min(value) OVER (
            PARTITION BY stay_id ORDER BY at_s RANGE BETWEEN 172800 PRECEDING AND 1 PRECEDING
        ) AS two_day_minimum,
        CASE
            WHEN $rolling_baseline THEN min(value) OVER (
                PARTITION BY stay_id ORDER BY at_s RANGE BETWEEN $baseline_s PRECEDING AND 1 PRECEDING
            )
            ELSE coalesce(
                min(value) FILTER (WHERE at_s BETWEEN -$baseline_s AND 0) OVER earlier,
                arg_min(value, at_s) FILTER (WHERE at_s > 0) OVER earlier
            )
        END AS baseline
    FROM stay_creatinine
    WINDOW earlier AS (PARTITION BY stay_id ORDER BY at_s RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
)
SELECT
    part,
    stay_id,
    at_s,
    stored_s,
    value,
    baseline,
    coalesce(
        round(value / baseline, 6) >= $creatinine_ratio
        OR (
            $count_stage_3
            AND value >= $stage_3_creatinine
            AND (
                NOT $stage_3_needs_rise
                OR round(value - two_day_minimum, 6) >= $acute_rise
                OR round(value / baseline, 6) >= 1.5
            )
        ),
        FALSE
    ) AS meets_criterion
FROM compared
ORDER BY part, stay_id, at_s
