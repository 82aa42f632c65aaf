-- Creatinine around each stay, by patient since many labs carry no admission; seconds since ICU admission.
SELECT
    c.part,
    c.stay_id,
    c.exit_s,
    date_diff('second', c.intime, m.charttime) AS at_s,
    date_diff('second', c.intime, m.storetime) AS stored_s,
    m.value
FROM cohort AS c
JOIN creatinine AS m ON m.subject_id = c.subject_id
WHERE m.charttime <= c.exit_time AND date_diff('second', c.intime, m.charttime) >= -$lookback_s
