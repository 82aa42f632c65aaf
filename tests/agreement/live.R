# Numbers of R's packages on their own tables, one line each, and the data that went in: for test_r_live.py.
for (p in c("survival", "riskRegression", "prodlim")) if (!requireNamespace(p, quietly = TRUE)) quit(status = 77)
suppressPackageStartupMessages({library(survival); library(riskRegression); library(prodlim)})
found <- list()
add <- function(case, quantity, option, model = "", versus = "", cause = NA, time = NA, value = NA, se = NA,
                lower = NA, upper = NA)
  found[[length(found) + 1]] <<- data.frame(case, quantity, option, model, versus, cause, time, value, se,
                                            lower, upper)
number <- function(x) as.numeric(x)
colons <- subset(colon, etype == 2 & !is.na(nodes))
tables <- list(
  colon = with(colons, data.frame(time, status, age, nodes, group = extent)),
  gbsg = with(gbsg, data.frame(time = rfstime, status, age, nodes, group = grade)),
  ovarian = with(ovarian, data.frame(time = futime, status = fustat, age, nodes = rx, group = resid.ds)),
  rats = with(rats, data.frame(time, status, age = litter / 10, nodes = rx, group = number(sex == "f"))),
  months = with(na.omit(lung[, c("time", "status", "age", "ph.karno", "sex")]),
                data.frame(time = ceiling(time / 60), status = status - 1, age, nodes = ph.karno, group = sex)),
  transplant = with(subset(na.omit(transplant), futime > 0), data.frame(
    time = futime, status = c(0, 2, 1, 2)[number(event)], age, nodes = year - 1995, group = number(sex == "f"))),
  pbc = with(na.omit(pbc[, 2:12]), data.frame(time, status = c(0, 2, 1)[status + 1], age, nodes = log(bili), group = trt)))

scored <- function(case, risks, formula, data, times, cause) {
  for (model in c("km", "cox")) {
    f <- if (model == "km") Hist(time, status) ~ 1 else Hist(time, status) ~ age + nodes
    s <- Score(risks, formula = f, data = data, times = times, cause = cause, metrics = c("brier", "auc"),
               summary = "ipa", cens.model = model, contrasts = TRUE, progress.bar = NULL)
    for (what in c("Brier", "AUC")) {
      b <- as.data.frame(s[[what]]$score)
      for (i in seq_len(nrow(b))) add(case, what, model, b$model[i], "", cause, b$times[i], b[[what]][i], b$se[i])
      if (what == "Brier") for (i in seq_len(nrow(b))) add(case, "IPA", model, b$model[i], "", cause, b$times[i], b$IPA[i])
      b <- as.data.frame(s[[what]]$contrasts); delta <- paste0("delta.", what)
      for (i in seq_len(nrow(b)))
        add(case, delta, model, b$model[i], as.character(b$reference[i]), cause, b$times[i], b[[delta]][i], b$se[i])
    }
  }
}

for (case in names(tables)) {
  d <- tables[[case]]; causes <- if (max(d$status) > 1) 1:2 else 1
  set.seed(7); d <- d[sample(nrow(d), min(nrow(d), 400)), ]
  d$w <- round(runif(nrow(d), .5, 2), 3); d$entry <- round(d$time * runif(nrow(d), 0, .6), 2)
  times <- if (case == "rats") c(70, 90, 100) else unname(quantile(d$time, c(.25, .5, .7)))
  d$event <- factor(d$status, 0:max(causes)); d$id <- seq_len(nrow(d))
  for (type in c("plain", "log", "log-log", "logit", "arcsin")) for (option in c("", "weights", "entry")) {
    if (max(causes) > 1 && type == "arcsin") next                        # survfit ends in an error
    y <- if (max(causes) == 1) "status" else "event"
    y <- if (option == "entry") paste0("Surv(entry,time,", y, ")") else paste0("Surv(time,", y, ")")
    a <- list(as.formula(paste(y, "~ 1")), data = d, conf.type = type, timefix = FALSE)
    if (max(causes) > 1) a$id <- d$id
    if (option == "weights") { a$weights <- d$w; if (max(causes) == 1) a$robust <- FALSE }
    s <- summary(do.call(survfit, a), times = times, extend = TRUE)
    for (j in causes) for (k in 1:3) if (max(causes) == 1)
      add(case, "KM", paste(type, option, sep = ","), "", "", NA, times[k], s$surv[k], s$std.err[k], s$lower[k], s$upper[k])
    else add(case, "CIF", paste(type, option, sep = ","), "", "", j, times[k], s$pstate[k, j + 1], s$std.err[k, j + 1],
             s$lower[k, j + 1], s$upper[k, j + 1])
  }
  if (max(causes) == 1) {
    for (option in c("", "weights", "entry", "robust", "strata")) {
      rhs <- if (option == "strata") "age + nodes + strata(group)" else "age + nodes + group"
      y <- if (option == "entry") "Surv(entry, time, status)" else "Surv(time, status)"
      a <- list(as.formula(paste(y, "~", rhs)), data = d)
      if (option == "weights") a$weights <- d$w
      m <- do.call(coxph, c(a, list(robust = option == "robust", control = coxph.control(eps = 1e-12, toler.chol = 1e-14))))
      for (j in seq_along(coef(m))) add(case, "coxph", option, names(coef(m))[j], value = coef(m)[j], se = sqrt(m$var[j, j]))
      if (!option %in% c("entry", "strata")) for (dist in c("weibull", "lognormal", "loglogistic")) {
        m <- do.call(survreg, c(a, list(dist = dist, robust = option == "robust", control = survreg.control(rel.tolerance = 1e-13, maxiter = 100))))
        value <- setNames(c(coef(m), log(m$scale)), c("intercept", names(coef(m))[-1], "scale"))
        for (j in seq_along(value)) add(case, dist, option, names(value)[j], value = value[j], se = sqrt(m$var[j, j]))
      }
    }
    d$risk <- predict(coxph(Surv(time, status) ~ age + nodes, d))
    for (weight in c("n", "S", "S/G", "n/G2", "I")) for (option in c("", "weights", "entry", "tied", "ymax")) {
      if (option == "entry" && weight != "n") next                       # S ends R
      y <- if (option == "entry") "Surv(entry, time, status)" else "Surv(time, status)"
      a <- list(as.formula(paste(y, if (option == "tied") "~ group" else "~ risk")), data = d, timewt = weight, reverse = TRUE)
      if (option == "weights") a$weights <- d$w
      if (option == "ymax") a$ymax <- times[3]
      m <- do.call(concordance, a)
      add(case, "concordance", paste(weight, option, sep = ","), time = times[3], value = coef(m), se = sqrt(vcov(m)))
    }
  }
  half <- seq_len(nrow(d)) %% 2 == 1; train <- d[half | case == "ovarian", ]; test <- d[!half | case == "ovarian", ]
  for (j in causes) {
    fits <- lapply(list(full = c("age", "nodes"), small = "age", tied = "group"), function(v)
      if (max(causes) == 1) coxph(as.formula(paste("Surv(time, status) ~", paste(v, collapse = "+"))), train, x = TRUE)
      else CSC(as.formula(paste("Hist(time, status) ~", paste(v, collapse = "+"))), train))
    risks <- lapply(fits, function(m) if (max(causes) == 1) predictRisk(m, test, times) else predictRisk(m, test, times, cause = j))
    for (m in names(risks)) for (k in 1:3) test[[paste0(m, "__", j, "@", k)]] <- risks[[m]][, k]
    scored(case, risks, formula, test, times, j)
  }
  write.csv(d, paste0("data_", case, ".csv"), row.names = FALSE)
  write.csv(test, paste0("test_", case, ".csv"), row.names = FALSE)
}
write.csv(do.call(rbind, found), "lines.csv", row.names = FALSE)
