SELECT DISTINCT hadm_id FROM kept ORDER BY hadm_id
