-- Admissions with a code of chronic kidney disease.
SELECT
    TRY_CAST(hadm_id AS BIGINT) AS hadm_id,
    TRY_CAST(seq_num AS INTEGER) AS seq_num,
    icd_code,
    icd_version,
    CASE WHEN TRY_CAST(hadm_id AS BIGINT) IS NULL THEN 'hadm_id is not a number' END AS problem
FROM diagnoses_icd
WHERE (icd_version = '9' AND icd_code LIKE '585%') OR (icd_version = '10' AND icd_code LIKE 'N18%')
