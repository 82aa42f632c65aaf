-- A prediction time wherever a value of the stay becomes known.
SELECT stay_id, known_s AS at_s FROM part_creatinine WHERE known_s >= 0
UNION
SELECT stay_id, known_s AS at_s FROM part_urine
