# Cox regression on intervals, survival curves along paths of covariates, and tmerge, of R's package survival.
# Run in an empty folder: Rscript start_stop.R. The numbers in recorded_start_stop/ are of R 4.2.2 with
# survival 3.5-3.
if (!requireNamespace("survival", quietly = TRUE)) quit(status = 77)
library(survival)
options(digits = 17)
tight <- coxph.control(eps = 1e-12, toler.chol = 1e-14)
save_table <- function(x, name) write.csv(x, paste0(name, ".csv"), row.names = FALSE)

# ---- the Stanford heart transplants ----
heart <- survival::heart
heart$transplant <- as.numeric(heart$transplant == "1")
save_table(heart[, c("id", "start", "stop", "event", "age", "surgery", "transplant")], "heart")
path <- data.frame(
  id = c("kept", "kept", "late", "left", "left"),
  start = c(0, 30, 10, 0, 40), stop = c(30, 400, 200, 20, 300), event = 0,
  age = c(-5, -5, 3, 1, 1.5), surgery = c(0, 0, 1, 0, 0), transplant = c(0, 1, 1, 0, 1)
)
save_table(path, "path")
coefficients <- curves <- NULL
for (ties in c("efron", "breslow")) {
  fit <- coxph(Surv(start, stop, event) ~ age + surgery + transplant, heart, ties = ties, control = tight)
  robust <- coxph(Surv(start, stop, event) ~ age + surgery + transplant, heart, ties = ties, cluster = id, control = tight)
  coefficients <- rbind(coefficients, data.frame(
    ties = ties, name = names(coef(fit)), coef = coef(fit), se = sqrt(diag(vcov(fit))),
    robust = sqrt(diag(vcov(robust)))
  ))
  found <- survfit(fit, newdata = path, id = id)
  who <- rep(names(found$strata), found$strata)
  curves <- rbind(curves, data.frame(ties = ties, id = who, time = found$time, surv = found$surv))
  strata <- coxph(Surv(start, stop, event) ~ age + transplant + strata(surgery), heart, ties = ties, control = tight)
  coefficients <- rbind(coefficients, data.frame(
    ties = paste(ties, "strata"), name = names(coef(strata)), coef = coef(strata), se = sqrt(diag(vcov(strata))),
    robust = NA
  ))
}
# the end of follow-up, once per patient, with covariates along time
ends <- !duplicated(heart$id, fromLast = TRUE)
heart$left <- as.numeric(ends & heart$event == 0)
shifted <- transform(heart, stop = ifelse(event == 1, stop - 1e-3, stop))
fit <- coxph(Surv(start, stop, left) ~ age + transplant, shifted, ties = "breslow", control = tight)
coefficients <- rbind(coefficients, data.frame(
  ties = "censoring", name = names(coef(fit)), coef = coef(fit), se = sqrt(diag(vcov(fit))), robust = NA
))
save_table(coefficients, "coefficients")
save_table(curves, "curves")

# ---- dated measurements ----
baseline <- subset(pbc, id <= 60, c(id, time, status, age, sex))
dated <- subset(pbcseq, id <= 60, c(id, day, bili, albumin, chol))
save_table(baseline, "baseline")
save_table(dated, "dated")
merged <- tmerge(baseline, baseline, id = id, death = event(time, status == 2))
merged <- tmerge(merged, dated, id = id, bili = tdc(day, bili), albumin = tdc(day, albumin), chol = tdc(day, chol))
save_table(merged[, c("id", "tstart", "tstop", "death", "age", "bili", "albumin", "chol")], "merged")

# ---- a stacked Cox model over landmarks, each with a window ----
landmarks <- c(0, 30, 60, 90)
stacked <- NULL
for (s in landmarks) {
  here <- heart[heart$start <= s & heart$stop > s, ]
  last <- heart[ends, ]
  last <- last[match(here$id, last$id), ]
  here$stop <- pmin(last$stop, s + 200)
  here$event <- ifelse(last$stop <= s + 200, last$event, 0)
  here$start <- s
  here$u <- s / 90
  stacked <- rbind(stacked, here)
}
fit <- coxph(
  Surv(start, stop, event) ~ age + transplant + I(age * u) + I(transplant * u) + I(age * u^2) +
    I(transplant * u^2) + u + I(u^2), stacked,
  ties = "breslow", cluster = id, control = tight
)
save_table(data.frame(name = names(coef(fit)), coef = coef(fit), robust = sqrt(diag(vcov(fit)))), "landmark")
base <- basehaz(fit, centered = FALSE)
forecasts <- NULL
for (s in c(30, 45)) for (age in c(-5, 3)) for (transplant in 0:1) for (t in c(s + 20, s + 200)) {
  u <- s / 90
  x <- c(age, transplant, age * u, transplant * u, age * u^2, transplant * u^2, u, u^2)
  hazard <- max(base$hazard[base$time <= t]) - max(base$hazard[base$time <= s])
  sf <- exp(-hazard * exp(sum(coef(fit) * x)))
  forecasts <- rbind(forecasts, data.frame(s = s, age = age, transplant = transplant, t = t, sf = sf))
}
save_table(forecasts, "landmark_forecasts")
