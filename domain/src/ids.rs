//! Names that cross a boundary, each with its own type so that two of them cannot be swapped.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Why a text is not the name it was given for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} {text:?}: {why}")]
pub struct BadName {
    what: &'static str,
    text: String,
    why: &'static str,
}

/// One execution of a plan. Chosen by the runner before the run, so that an upload can be repeated without harm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunId(pub Uuid);

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for RunId {
    type Err = BadName;
    fn from_str(text: &str) -> Result<Self, BadName> {
        Uuid::parse_str(text).map(Self).map_err(|_| bad("run id", text, "not a UUID"))
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $check:path) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(value_type = String))]
        pub struct $name(String);

        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl FromStr for $name {
            type Err = BadName;
            fn from_str(text: &str) -> Result<Self, BadName> {
                $check(text).map(Self)
            }
        }
        impl TryFrom<String> for $name {
            type Error = BadName;
            fn try_from(text: String) -> Result<Self, BadName> {
                text.parse()
            }
        }
        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0
            }
        }
    };
}

name!(
    /// A project's name in URLs: lower-case letters, digits, `-`, `_` and `.`, 1 to 64 characters, starting with a
    /// letter or digit; not a name that the server's own pages have.
    ProjectSlug,
    slug
);
name!(
    /// A commit: 7 to 64 lower-case hexadecimal digits (SHA-1 or SHA-256, possibly shortened).
    CommitSha,
    commit
);
name!(
    /// The first 12 hexadecimal digits of the SHA-256 over a canonical form: of a plan, or of a testbed.
    Digest,
    digest
);

impl CommitSha {
    /// The seven digits people read.
    pub fn short(&self) -> &str {
        &self.0[..7]
    }

    /// Whether both may be the same commit; one may be shortened.
    pub fn is_same(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0) || other.0.starts_with(&self.0)
    }
}

impl Digest {
    /// The digest of a value's canonical JSON. Maps must be ordered (`BTreeMap`), which all wire types here are.
    pub fn of(value: &impl Serialize) -> Self {
        use sha2::{Digest as _, Sha256};
        let canonical = serde_json::to_vec(value).expect("wire types serialize");
        let hash = Sha256::digest(&canonical);
        Self(hash.iter().take(6).map(|byte| format!("{byte:02x}")).collect())
    }
}

/// First segments of the server's own paths.
const RESERVED: [&str; 21] = [
    "api",
    "assets",
    "audit",
    "docs",
    "favicon.ico",
    "github",
    "hardware",
    "healthz",
    "login",
    "logout",
    "methodology",
    "metrics",
    "readyz",
    "robots.txt",
    "runners",
    "runs",
    "settings",
    "sign-in",
    "sign-out",
    "status",
    "tokens",
];

fn slug(text: &str) -> Result<String, BadName> {
    if RESERVED.contains(&text) {
        return Err(bad("project", text, "the server's own pages have this name"));
    }
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '.');
    let starts = text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    if (1..=64).contains(&text.len()) && starts && text.chars().all(fits) {
        Ok(text.to_owned())
    } else {
        Err(bad(
            "project",
            text,
            "use 1 to 64 lower-case letters, digits, '-', '_' or '.', starting with a letter or digit",
        ))
    }
}

fn commit(text: &str) -> Result<String, BadName> {
    let text = text.to_ascii_lowercase();
    if (7..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit()) {
        Ok(text)
    } else {
        Err(bad("commit", &text, "a commit is 7 to 64 hexadecimal digits"))
    }
}

fn digest(text: &str) -> Result<String, BadName> {
    let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    if text.len() == 12 && text.bytes().all(hex) {
        Ok(text.to_owned())
    } else {
        Err(bad("digest", text, "a digest is 12 lower-case hexadecimal digits"))
    }
}

fn bad(what: &'static str, text: &str, why: &'static str) -> BadName {
    let text = text.chars().take(80).collect();
    BadName { what, text, why }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_take_what_they_say_and_nothing_else() {
        for good in ["a", "sentiment", "llm-7b_q4.k", "0day", &"x".repeat(64)] {
            assert!(good.parse::<ProjectSlug>().is_ok(), "{good}");
        }
        for bad in ["", "A", "a b", "-a", "../x", "é", "api", "healthz", &"x".repeat(65)] {
            assert!(bad.parse::<ProjectSlug>().is_err(), "{bad}");
        }
        assert_eq!("3F2C91A".parse::<CommitSha>().unwrap().short(), "3f2c91a");
        assert!("3f2c91".parse::<CommitSha>().is_err());
        assert!(serde_json::from_str::<CommitSha>("\"main\"").is_err());
    }

    #[test]
    fn a_digest_reads_back_and_differs_with_its_input() {
        let one = Digest::of(&("a", 1));
        assert_eq!(one.as_str().parse::<Digest>().unwrap(), one);
        assert_ne!(one, Digest::of(&("a", 2)));
    }
}
