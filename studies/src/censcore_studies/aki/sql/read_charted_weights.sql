SELECT
    TRY_CAST(stay_id AS BIGINT) AS stay_id,
    as_time(charttime) AS charttime,
    as_time(storetime) AS storetime,
    TRY_CAST(valuenum AS DOUBLE) * CASE WHEN itemid = '226531' THEN 0.45359237 ELSE 1 END AS kilograms,
    itemid <> '224639' AS at_admission,
    CASE WHEN itemid = '226531' THEN 'pounds' ELSE 'kilograms' END AS source,
    CASE
        WHEN TRY_CAST(stay_id AS BIGINT) IS NULL THEN 'stay_id is not a number'
        WHEN as_time(charttime) IS NULL THEN 'charttime is not a time'
        WHEN storetime IS NOT NULL AND as_time(storetime) IS NULL THEN 'storetime is not a time'
        WHEN valuenum IS NULL THEN 'no weight'
        WHEN kilograms IS NULL OR NOT isfinite(kilograms) THEN 'weight is not a number'
        WHEN kilograms < $lowest_weight THEN 'weight below the lowest possible'
        WHEN kilograms > $highest_weight THEN 'weight above the highest possible'
    END AS problem
FROM chartevents
WHERE list_contains($weight_items, itemid)
