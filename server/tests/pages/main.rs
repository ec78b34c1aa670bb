//! The pages as a browser gets them: the real router on a real Postgres, asked by DOM queries.

mod compare;
mod fake_github;
mod frame;
mod history;
mod runs;
mod settings;
mod sign_in;
mod site;
mod snapshot;
mod visitor;
