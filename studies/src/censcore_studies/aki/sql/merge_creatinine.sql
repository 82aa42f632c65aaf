-- One value per patient and time: repeated draws are averaged.
SELECT
    subject_id,
    charttime,
    greatest(charttime, max(coalesce(storetime, charttime))) AS storetime,
    avg(value) AS value
FROM kept
GROUP BY subject_id, charttime
ORDER BY subject_id, charttime
