SELECT
    TRY_CAST(subject_id AS BIGINT) AS subject_id,
    TRY_CAST(hadm_id AS BIGINT) AS hadm_id,
    TRY_CAST(admittime AS TIMESTAMP) AS admittime,
    TRY_CAST(dischtime AS TIMESTAMP) AS dischtime,
    TRY_CAST(deathtime AS TIMESTAMP) AS deathtime,
    CASE
        WHEN TRY_CAST(subject_id AS BIGINT) IS NULL OR TRY_CAST(hadm_id AS BIGINT) IS NULL
            THEN 'subject_id or hadm_id is not a number'
        WHEN TRY_CAST(admittime AS TIMESTAMP) IS NULL THEN 'admittime is not a time'
        WHEN dischtime IS NOT NULL AND TRY_CAST(dischtime AS TIMESTAMP) IS NULL THEN 'dischtime is not a time'
        WHEN deathtime IS NOT NULL AND TRY_CAST(deathtime AS TIMESTAMP) IS NULL THEN 'deathtime is not a time'
    END AS problem
FROM admissions
