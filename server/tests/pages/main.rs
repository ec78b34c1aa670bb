//! The pages as a browser gets them: the real router on a real Postgres, asked by DOM queries.

mod compare;
mod frame;
mod history;
mod site;
mod snapshot;
