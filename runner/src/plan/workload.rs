//! `[workload]`: what is sent, and what a right answer looks like.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use plimsoll_domain::plan::{Assertion, Expect, Workload};
use serde_json::{Number, Value};
use sha2::{Digest as _, Sha256};
use toml::de::DeValue;

use super::section::{Field, Section};
use super::source::PlanError;
use super::trust::Trust;

pub(super) const KEYS: [&str; 4] = ["body", "file", "expect_status", "expect"];
/// A workload file larger than this is refused.
pub(super) const MAX_FILE: u64 = 64 << 20;
/// Each is sent once in the smoke phase.
pub(super) const MAX_BODIES: usize = 100_000;

/// The section as the report carries it, with the bodies.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) workload: Workload,
    /// At least one; an empty body is sent without one.
    pub(super) bodies: Vec<Vec<u8>>,
}

impl Read {
    pub(super) fn has_body(&self) -> bool {
        self.bodies.iter().any(|body| !body.is_empty())
    }
}

pub(super) fn read(top: &Section, folder: &Path, trust: Trust<'_>) -> Result<Read, PlanError> {
    let section = top.sub("workload", &KEYS)?;
    let bodies = match (section.get("body"), section.get("file")) {
        (Some(_), Some(file)) => {
            let error = section.source.error(file.key_span.clone(), "[workload] has both `body` and `file`");
            return Err(error.hint("keep one of them"));
        }
        (Some(body), None) => vec![inline(&body)?],
        (None, Some(file)) => lines(&file, folder, trust)?,
        (None, None) => vec![Vec::new()],
    };
    let status = section.get("expect_status").map_or(Ok(200), |field| field.whole(100..=599))?;
    let json = section.open("expect")?.fields().iter().map(assertion).collect::<Result<BTreeMap<_, _>, _>>()?;
    let expect = Expect { status: status as u16, json };
    let workload = Workload { requests: bodies.len() as u32, sha256: sha256(&bodies), expect };
    Ok(Read { workload, bodies })
}

/// SHA-256 over all bodies in order, each preceded by its length (eight bytes, big-endian).
fn sha256(bodies: &[Vec<u8>]) -> String {
    let mut hash = Sha256::new();
    for body in bodies {
        hash.update((body.len() as u64).to_be_bytes());
        hash.update(body);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A text is sent as it is; a table or list as JSON.
fn inline(field: &Field) -> Result<Vec<u8>, PlanError> {
    match field.value {
        DeValue::String(text) => Ok(text.as_bytes().to_vec()),
        DeValue::Table(_) | DeValue::Array(_) => Ok(json(field, field.value)?.to_string().into_bytes()),
        _ => Err(field.wrong_type("text, a table or a list")),
    }
}

/// A file of JSON bodies, one a line, beside the plan.
fn lines(field: &Field, folder: &Path, trust: Trust<'_>) -> Result<Vec<Vec<u8>>, PlanError> {
    let name = field.string()?;
    let broken = |why: String| field.error(format!("names {name:?}: {why}"));
    let file = match trust {
        Trust::Own => beside(field, folder)?,
        Trust::Listed(folder, _) => folder.file(name).map_err(broken)?,
    };
    let mut text = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut text).map_err(|error| broken(error.to_string()))?;
    if text.len() as u64 > MAX_FILE {
        return Err(broken(format!("it is larger than {} MiB", MAX_FILE >> 20)));
    }
    let mut bodies = Vec::new();
    for (i, line) in text.split(|byte| *byte == b'\n').enumerate() {
        let line = line.trim_ascii();
        if line.is_empty() {
            continue;
        }
        if let Err(error) = serde_json::from_slice::<serde::de::IgnoredAny>(line) {
            return Err(broken(format!("line {} is no JSON: {}", i + 1, at_column(&error)))
                .hint("each line holds one request body as JSON"));
        }
        bodies.push(line.to_vec());
    }
    match bodies.len() {
        0 => Err(broken("it holds no request body".to_owned())),
        n if n > MAX_BODIES => Err(broken(format!("it holds {n} bodies; at most {MAX_BODIES} are taken"))),
        _ => Ok(bodies),
    }
}

/// The file that a person's own plan names.
fn beside(field: &Field, folder: &Path) -> Result<File, PlanError> {
    let name = field.string()?;
    let broken = |why: String| field.error(format!("names {name:?}: {why}"));
    // Both resolved, so that neither `..` nor a link leads out of the plan's folder.
    let root = folder.canonicalize().map_err(|error| broken(error.to_string()))?;
    let path = root.join(name).canonicalize().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => broken(format!("there is no such file in {}", folder.display())),
        _ => broken(error.to_string()),
    })?;
    if !path.starts_with(&root) {
        return Err(broken("it lies outside the plan's folder".to_owned()).hint("copy it beside the plan"));
    }
    let file = File::open(&path).map_err(|error| broken(error.to_string()))?;
    if !file.metadata().is_ok_and(|data| data.is_file()) {
        return Err(broken("it is no file".to_owned()));
    }
    Ok(file)
}

/// serde_json counts lines from the text it was given, which is always one line here.
fn at_column(error: &serde_json::Error) -> String {
    error.to_string().replace(" at line 1 column ", " at column ")
}

/// `"/pointer" = value`, `{ exists = true }`, `{ length = 384 }` or `{ equals = value }`.
fn assertion(field: &Field) -> Result<(String, Assertion), PlanError> {
    let pointer = field.key.clone();
    if !pointer.is_empty() && !pointer.starts_with('/') {
        return Err(field
            .source
            .error(field.key_span.clone(), format!("`{pointer}` is no JSON pointer: it must start with `/`"))
            .hint(format!("write \"/{}\" = …", pointer.replace('.', "/"))));
    }
    let DeValue::Table(_) = field.value else {
        return Ok((pointer, Assertion::Equals(json(field, field.value)?)));
    };
    let table = field.table(&["exists", "length", "equals"])?;
    let assertion = match (table.get("exists"), table.get("length"), table.get("equals")) {
        (Some(exists), None, None) => match exists.bool()? {
            true => Assertion::Exists,
            false => return Err(exists.error("can only be true")),
        },
        (None, Some(length), None) => Assertion::Length(length.whole(0..=u32::MAX)?.into()),
        (None, None, Some(value)) => Assertion::Equals(json(&value, value.value)?),
        _ => return Err(field.error("takes exactly one of `exists`, `length` and `equals`")),
    };
    Ok((pointer, assertion))
}

/// A TOML value as JSON. Dates become text.
fn json(field: &Field, value: &DeValue<'_>) -> Result<Value, PlanError> {
    Ok(match value {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Integer(integer) => {
            let whole = i64::from_str_radix(integer.as_str(), integer.radix());
            Value::Number(whole.map_err(|_| field.error(format!("holds a number too large: {integer}")))?.into())
        }
        DeValue::Float(float) => {
            let number = float.as_str().parse().ok().and_then(Number::from_f64);
            Value::Number(number.ok_or_else(|| field.error(format!("holds {float}, which JSON cannot say")))?)
        }
        DeValue::Boolean(value) => Value::Bool(*value),
        DeValue::Datetime(date) => Value::String(date.to_string()),
        DeValue::Array(array) => {
            Value::Array(array.iter().map(|value| json(field, value.get_ref())).collect::<Result<_, _>>()?)
        }
        DeValue::Table(table) => Value::Object(
            table
                .iter()
                .map(|(key, value)| Ok((key.get_ref().to_string(), json(field, value.get_ref())?)))
                .collect::<Result<_, PlanError>>()?,
        ),
    })
}
