-- Runs of staged times that meet a criterion. "first": one run per stay that never ends.
WITH staged AS (
    SELECT 'creatinine' AS endpoint, part, stay_id, at_s, meets_criterion
    FROM staged_creatinine
    WHERE at_s >= -$onset_lookback_s
    UNION ALL
    SELECT 'urine' AS endpoint, part, stay_id, at_s, meets_criterion
    FROM staged_urine
    WHERE staged
),
turns AS (
    SELECT
        *,
        lag(meets_criterion, 1, FALSE) OVER (PARTITION BY endpoint, stay_id ORDER BY at_s) AS met_before
    FROM staged
),
onsets AS (
    SELECT
        endpoint,
        part,
        stay_id,
        meets_criterion,
        at_s AS onset_s,
        lead(at_s) OVER (PARTITION BY endpoint, stay_id ORDER BY at_s) AS end_s
    FROM turns
    WHERE meets_criterion <> met_before
)
SELECT
    endpoint,
    part,
    stay_id,
    onset_s,
    CASE WHEN $recurrent THEN end_s END AS end_s
FROM onsets
WHERE meets_criterion
QUALIFY $recurrent OR row_number() OVER (PARTITION BY endpoint, stay_id ORDER BY onset_s) = 1
ORDER BY endpoint, part, stay_id, onset_s
