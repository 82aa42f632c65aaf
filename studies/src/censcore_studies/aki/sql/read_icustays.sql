SELECT
    TRY_CAST(subject_id AS BIGINT) AS subject_id,
    TRY_CAST(hadm_id AS BIGINT) AS hadm_id,
    TRY_CAST(stay_id AS BIGINT) AS stay_id,
    TRY_CAST(intime AS TIMESTAMP) AS intime,
    TRY_CAST(outtime AS TIMESTAMP) AS outtime,
    CASE
        WHEN TRY_CAST(subject_id AS BIGINT) IS NULL
            OR TRY_CAST(hadm_id AS BIGINT) IS NULL
            OR TRY_CAST(stay_id AS BIGINT) IS NULL
            THEN 'subject_id, hadm_id or stay_id is not a number'
        WHEN TRY_CAST(intime AS TIMESTAMP) IS NULL OR TRY_CAST(outtime AS TIMESTAMP) IS NULL
            THEN 'intime or outtime is not a time'
        WHEN TRY_CAST(outtime AS TIMESTAMP) <= TRY_CAST(intime AS TIMESTAMP) THEN 'outtime is not after intime'
    END AS problem
FROM icustays
