-- Every ICU stay with what is known of it at admission, its exit, and the first reason to leave it out.
WITH ordered AS (
    SELECT
        *,
        max(outtime) OVER (
            PARTITION BY subject_id ORDER BY intime, stay_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS earlier_outtime
    FROM icustays
),
joined AS (
    SELECT
        s.subject_id,
        s.hadm_id,
        s.stay_id,
        s.intime,
        s.outtime,
        s.earlier_outtime,
        a.admittime,
        a.deathtime,
        $death_ends_stay AND a.deathtime IS NOT NULL AND a.deathtime <= s.outtime AS dies,
        p.subject_id IS NOT NULL AS has_patient,
        a.hadm_id IS NOT NULL AS has_admission,
        p.gender = 'M' AS male,
        p.anchor_age + year(a.admittime) - p.anchor_year AS age,
        p.anchor_year_group
    FROM ordered AS s
    LEFT JOIN patients AS p ON p.subject_id = s.subject_id
    LEFT JOIN admissions AS a ON a.hadm_id = s.hadm_id AND a.subject_id = s.subject_id
),
exits AS (
    SELECT *, CASE WHEN dies THEN deathtime ELSE outtime END AS exit_time FROM joined
),
creatinine_counts AS (
    SELECT e.stay_id, count(*) AS creatinine_values
    FROM exits AS e
    JOIN creatinine AS c ON c.subject_id = e.subject_id AND c.charttime BETWEEN e.intime AND e.exit_time
    GROUP BY e.stay_id
),
urine_counts AS (
    SELECT e.stay_id, count(*) AS urine_values
    FROM exits AS e
    JOIN urine AS u ON u.stay_id = e.stay_id AND u.charttime BETWEEN e.intime AND e.exit_time
    GROUP BY e.stay_id
),
weighed AS (
    SELECT DISTINCT stay_id FROM weights
),
earlier_codes AS (
    SELECT a.subject_id, a.hadm_id, a.dischtime
    FROM chronic_renal_failure AS c
    JOIN admissions AS a ON a.hadm_id = c.hadm_id
),
coded AS (
    SELECT DISTINCT e.stay_id
    FROM exits AS e
    JOIN earlier_codes AS c ON c.subject_id = e.subject_id
    WHERE c.dischtime <= e.intime OR ($this_admission_too AND c.hadm_id = e.hadm_id)
)
SELECT
    e.subject_id,
    e.stay_id,
    e.intime,
    e.exit_time,
    date_diff('second', e.intime, e.exit_time) AS exit_s,
    e.dies,
    e.male,
    e.age,
    e.anchor_year_group,
    coded.stay_id IS NOT NULL AS chronic_renal_failure,
    weighed.stay_id IS NOT NULL AS has_weight,
    CASE
        WHEN NOT e.has_patient THEN 'patient unknown or unusable'
        WHEN NOT e.has_admission THEN 'hospital admission unknown or unusable'
        WHEN e.exit_time <= e.intime THEN 'death before ICU admission'
        WHEN e.earlier_outtime > e.intime THEN 'overlaps an earlier stay of the patient'
        WHEN e.age < $minimum_age THEN 'younger than the minimum age'
        WHEN e.age > 130 THEN 'older than 130 years'
        WHEN exit_s < $minimum_stay_s THEN 'shorter than the minimum stay'
        WHEN NOT has_weight AND $weight_needed THEN 'no usable weight'
        WHEN coalesce(creatinine_values, 0) < $minimum_creatinine THEN 'too few creatinine values'
        WHEN coalesce(urine_values, 0) < $minimum_urine THEN 'too few urine values'
    END AS left_out
FROM exits AS e
LEFT JOIN creatinine_counts ON creatinine_counts.stay_id = e.stay_id
LEFT JOIN urine_counts ON urine_counts.stay_id = e.stay_id
LEFT JOIN weighed ON weighed.stay_id = e.stay_id
LEFT JOIN coded ON coded.stay_id = e.stay_id
