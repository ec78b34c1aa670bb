//! The text of a plan file, and messages that point into it.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A plan file's text with its name.
#[derive(Debug)]
pub struct Source {
    pub path: PathBuf,
    pub text: String,
}

/// Characters of a line that an excerpt shows.
const SHOWN: usize = 72;

impl Source {
    /// Line and column (both from 1, columns in characters) of a byte offset.
    pub fn position(&self, offset: usize) -> (usize, usize) {
        let before = &self.text[..self.floor(offset)];
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }

    pub fn error(&self, span: Range<usize>, message: impl Into<String>) -> PlanError {
        let (line, column) = self.position(span.start);
        PlanError {
            path: self.path.clone(),
            at: Some((line, column)),
            message: message.into(),
            excerpt: Some(self.excerpt(span)),
            hint: None,
        }
    }

    /// The line with the span underlined; of a long line the part around it.
    fn excerpt(&self, span: Range<usize>) -> String {
        let (line, column) = self.position(span.start);
        let text = self.text.lines().nth(line - 1).unwrap_or("");
        let skipped = if text.chars().count() > SHOWN { (column - 1).saturating_sub(SHOWN / 2) } else { 0 };
        let shown: String = text.chars().skip(skipped).take(SHOWN).collect();
        let before = column - 1 - skipped;
        let rest = shown.chars().count().saturating_sub(before);
        let wide = self.text[self.floor(span.start)..self.floor(span.end.max(span.start))].chars().count();
        let number = line.to_string();
        let gap = " ".repeat(number.len());
        // Tabs keep their width under the caret.
        let lead: String = shown.chars().take(before).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        format!("  {gap} |\n  {number} | {shown}\n  {gap} | {lead}{}", "^".repeat(wide.min(rest).max(1)))
    }

    fn floor(&self, offset: usize) -> usize {
        self.text.floor_char_boundary(offset.min(self.text.len()))
    }
}

/// What is wrong with a plan, where, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanError {
    path: PathBuf,
    at: Option<(usize, usize)>,
    message: String,
    excerpt: Option<String>,
    hint: Option<String>,
}

impl PlanError {
    /// An error about the file as a whole.
    pub fn whole(path: &Path, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), at: None, message: message.into(), excerpt: None, hint: None }
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The lines around it, with the place underlined.
    pub fn excerpt(&self) -> Option<&str> {
        self.excerpt.as_deref()
    }

    /// What to do about it.
    pub fn advice(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            Some((line, column)) => write!(f, "{}:{line}:{column}: {}", self.path.display(), self.message),
            None => write!(f, "{}: {}", self.path.display(), self.message),
        }
    }
}

impl std::error::Error for PlanError {}
