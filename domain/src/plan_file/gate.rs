//! `[gate]`: thresholds, and what is done in doubt.

use super::section::{Field, Section};
use super::source::PlanError;
use crate::policy::{Doubt, Policy};

pub fn policy(top: &Section) -> Result<Policy, PlanError> {
    let section = top.sub("gate", &["p99", "capacity", "error_rate", "when_in_doubt"])?;
    let mut policy = Policy::default();
    if let Some(limit) = limit(&section, "p99", "max_increase", "10%")? {
        policy.p99_increase = limit.percent()?;
    }
    if let Some(limit) = limit(&section, "capacity", "max_decrease", "5%")? {
        policy.capacity_decrease = limit.percent()?;
    }
    if let Some(limit) = limit(&section, "error_rate", "max_increase", "0.1pp")? {
        policy.error_rate_points = limit.points()?;
    }
    if let Some(field) = section.get("when_in_doubt") {
        let named = Doubt::ALL.into_iter().find(|doubt| field.string().is_ok_and(|name| name == doubt.name()));
        let hint = "write when_in_doubt = \"fail\" or when_in_doubt = \"pass\"";
        policy.when_in_doubt = named.ok_or_else(|| field.error("is neither `fail` nor `pass`").hint(hint))?;
    }
    Ok(policy)
}

/// `metric = { key = "limit" }`.
fn limit<'s>(section: &Section<'s>, metric: &str, key: &str, example: &str) -> Result<Option<Field<'s>>, PlanError> {
    let Some(field) = section.get(metric) else {
        return Ok(None);
    };
    let hint = format!("write {metric} = {{ {key} = \"{example}\" }}");
    let table = field.table(&[key]).map_err(|error| error.hint(&hint))?;
    table.get(key).map(Some).ok_or_else(|| field.error(format!("lacks `{key}`")).hint(&hint))
}
