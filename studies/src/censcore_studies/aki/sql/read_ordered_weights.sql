-- patientweight repeats on every order; each of its values counts once, when it first appears in the stay.
SELECT
    TRY_CAST(stay_id AS BIGINT) AS stay_id,
    min(as_time(starttime)) AS charttime,
    min(as_time(starttime)) AS storetime,
    TRY_CAST(patientweight AS DOUBLE) AS kilograms,
    TRUE AS at_admission,
    'inputevents' AS source,
    CASE
        WHEN TRY_CAST(stay_id AS BIGINT) IS NULL THEN 'stay_id is not a number'
        WHEN min(as_time(starttime)) IS NULL THEN 'starttime is not a time'
        WHEN patientweight IS NULL THEN 'no weight'
        WHEN TRY_CAST(patientweight AS DOUBLE) IS NULL OR NOT isfinite(TRY_CAST(patientweight AS DOUBLE))
            THEN 'weight is not a number'
        WHEN TRY_CAST(patientweight AS DOUBLE) < $lowest_weight THEN 'weight below the lowest possible'
        WHEN TRY_CAST(patientweight AS DOUBLE) > $highest_weight THEN 'weight above the highest possible'
    END AS problem
FROM inputevents
GROUP BY stay_id, patientweight
