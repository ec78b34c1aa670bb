//! Walking a parsed file: sections that know their keys, fields that know their place.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::source::{PlanError, Source};

/// One table of a file, its keys checked. A missing table reads as an empty one.
#[derive(Debug)]
pub struct Section<'s> {
    pub source: &'s Source,
    /// As people write it: `[service]`; empty for the top of the file.
    name: String,
    table: Option<&'s DeTable<'s>>,
    /// Where it begins, for messages about what is missing.
    span: Range<usize>,
}

impl<'s> Section<'s> {
    /// The top of the file.
    pub fn top(source: &'s Source, table: &'s DeTable<'s>, keys: &[&str]) -> Result<Self, PlanError> {
        let section = Self { source, name: String::new(), table: Some(table), span: 0..0 };
        section.check(keys)?;
        Ok(section)
    }

    /// The table under `name`.
    pub fn sub(&self, name: &str, keys: &[&str]) -> Result<Self, PlanError> {
        let section = self.open(name)?;
        section.check(keys)?;
        Ok(section)
    }

    /// The table under `name`, whose keys are free.
    pub fn open(&self, name: &str) -> Result<Self, PlanError> {
        let full = if self.name.is_empty() { name.to_owned() } else { format!("{}.{name}", self.name) };
        let Some(field) = self.get(name) else {
            return Ok(Self { source: self.source, name: full, table: None, span: self.span.clone() });
        };
        field.section(full)
    }

    pub fn get(&self, key: &str) -> Option<Field<'s>> {
        let (name, value) = self.table?.iter().find(|(name, _)| name.get_ref() == key)?;
        Some(self.field(name, value))
    }

    /// A field that must be there.
    pub fn need(&self, key: &str, example: &str) -> Result<Field<'s>, PlanError> {
        self.get(key).ok_or_else(|| {
            let line = format!("{key} = {example}");
            match (self.table, self.name.as_str()) {
                (Some(_), name) if !name.is_empty() => self
                    .source
                    .error(self.span.clone(), format!("[{name}] lacks `{key}`"))
                    .hint(format!("add `{line}` to it")),
                (None, name) => PlanError::whole(&self.source.path, format!("[{name}] with `{key}` is missing"))
                    .hint(format!("add\n[{name}]\n{line}")),
                _ => PlanError::whole(&self.source.path, format!("`{key}` is missing"))
                    .hint(format!("add `{line}` at the top")),
            }
        })
    }

    /// All fields in the order of the file.
    pub fn fields(&self) -> Vec<Field<'s>> {
        let mut fields: Vec<_> =
            self.table.into_iter().flat_map(DeTable::iter).map(|(name, value)| self.field(name, value)).collect();
        fields.sort_by_key(|field| field.key_span.start);
        fields
    }

    fn field(&self, name: &'s Spanned<std::borrow::Cow<'s, str>>, value: &'s Spanned<DeValue<'s>>) -> Field<'s> {
        Field {
            source: self.source,
            section: self.name.clone(),
            key: name.get_ref().to_string(),
            key_span: name.span(),
            value: value.get_ref(),
            span: value.span(),
        }
    }

    fn check(&self, keys: &[&str]) -> Result<(), PlanError> {
        for field in self.fields() {
            if keys.contains(&field.key.as_str()) {
                continue;
            }
            let place = match (self.name.as_str(), field.value) {
                ("", DeValue::Table(_)) => format!("unknown section [{}]", field.key),
                ("", _) => format!("unknown key `{}`", field.key),
                (name, _) => format!("unknown key `{}` in [{name}]", field.key),
            };
            let error = self.source.error(field.key_span, place);
            return Err(error.hint(match nearest(&field.key, keys) {
                Some(near) if matches!(field.value, DeValue::Table(_)) && self.name.is_empty() => {
                    format!("did you mean [{near}]?")
                }
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known here: {}", keys.join(", ")),
            }));
        }
        Ok(())
    }
}

/// The key that was probably meant: a slip or two away, or beginning alike.
pub fn nearest<'k>(given: &str, keys: &[&'k str]) -> Option<&'k str> {
    let given = given.to_ascii_lowercase().replace('-', "_");
    let score = |key: &str| {
        let slips = strsim::osa_distance(&given, key);
        let close = slips <= (key.len() / 4).max(1) && slips < key.len();
        strsim::jaro_winkler(&given, key) + if close { 1.0 } else { 0.0 }
    };
    let scored = keys.iter().map(|key| (score(key), *key));
    scored.filter(|(score, _)| *score > 0.75).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, key)| key)
}

/// One value of a file.
#[derive(Debug)]
pub struct Field<'s> {
    pub source: &'s Source,
    section: String,
    pub key: String,
    pub key_span: Range<usize>,
    pub value: &'s DeValue<'s>,
    pub span: Range<usize>,
}

impl<'s> Field<'s> {
    /// An error at the value.
    pub fn error(&self, why: impl AsRef<str>) -> PlanError {
        self.source.error(self.span.clone(), format!("`{}` {}", self.name(), why.as_ref()))
    }

    pub fn string(&self) -> Result<&'s str, PlanError> {
        match self.value {
            DeValue::String(text) => Ok(text),
            _ => Err(self.wrong_type("text in quotes")),
        }
    }

    pub fn bool(&self) -> Result<bool, PlanError> {
        match self.value {
            DeValue::Boolean(value) => Ok(*value),
            _ => Err(self.wrong_type("true or false")),
        }
    }

    pub fn array(&self) -> Result<&'s DeArray<'s>, PlanError> {
        match self.value {
            DeValue::Array(array) => Ok(array),
            _ => Err(self.wrong_type("a list in brackets")),
        }
    }

    /// A whole number within bounds.
    pub fn whole(&self, bounds: std::ops::RangeInclusive<u32>) -> Result<u32, PlanError> {
        let DeValue::Integer(integer) = self.value else {
            return Err(self.wrong_type("a whole number"));
        };
        let value = i64::from_str_radix(integer.as_str(), integer.radix()).ok();
        value
            .and_then(|value| u32::try_from(value).ok())
            .filter(|value| bounds.contains(value))
            .ok_or_else(|| self.error(format!("must be from {} to {}, not {integer}", bounds.start(), bounds.end())))
    }

    /// The elements of a list, each with its own place.
    pub fn elements(&self) -> Result<Vec<Field<'s>>, PlanError> {
        let element = |value: &'s Spanned<DeValue<'s>>| Field {
            source: self.source,
            section: self.section.clone(),
            key: self.key.clone(),
            key_span: self.key_span.clone(),
            value: value.get_ref(),
            span: value.span(),
        };
        Ok(self.array()?.iter().map(element).collect())
    }

    pub fn wrong_type(&self, wanted: &str) -> PlanError {
        self.error(format!("must be {wanted}, not {}", type_name(self.value)))
    }

    /// The table in this field, to be read as a section of its own.
    pub fn table(&self, keys: &[&str]) -> Result<Section<'s>, PlanError> {
        let section = self.section(self.name())?;
        section.check(keys)?;
        Ok(section)
    }

    fn section(&self, name: String) -> Result<Section<'s>, PlanError> {
        match self.value {
            DeValue::Table(table) => {
                Ok(Section { source: self.source, name, table: Some(table), span: self.key_span.clone() })
            }
            _ => Err(self.wrong_type("a table")),
        }
    }

    fn name(&self) -> String {
        if self.section.is_empty() { self.key.clone() } else { format!("{}.{}", self.section, self.key) }
    }
}

fn type_name(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a decimal number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
