//! The server as its users meet it: the real router on a real Postgres, and the real program.

mod access;
mod acts;
mod app;
mod backup;
mod bad_input;
mod baseline;
mod chart_images;
mod connections;
mod embedded;
mod github;
mod jobs;
mod layers;
mod limits;
mod migrations;
mod openapi;
mod operation;
mod own_database;
mod parts;
mod program;
mod reading;
mod recovery;
mod retention;
mod token;
mod upload;
mod waiting;
mod webhooks;
