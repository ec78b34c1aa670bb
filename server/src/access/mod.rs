//! Who may do what. Every route states what it needs when it is added ([`Routes`]), and a guard before the handler
//! checks it; there is no other way to add a route.

pub mod acts;
mod address;
mod caller;
mod file;
mod guard;
mod limits;
mod routes;
pub mod session;
mod signed;
mod token;
mod withheld;
mod workflow;

pub use address::Cidr;
pub use caller::{Caller, Grant, Refusal, Scope, Who};
pub use file::{TokenFileError, ensure};
pub(crate) use guard::{caller, may_still, request_id};
pub use guard::{on_project, on_run};
pub(crate) use limits::Counted;
pub use limits::{Allowance, Limits};
pub use routes::{Need, Route, Routes};
pub use signed::SigningKey;
pub use token::{MIN_TOKEN, Tokens, hash, random};
pub use withheld::Told;
pub use workflow::{Issuer, Workflow};
