//! `plimsoll init`.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;

use serde_json::json;

use super::Done;
use super::args::InitArgs;
use crate::exit::{Exit, Failure};
use crate::plan::{self, Overrides, template};

pub(super) fn execute(args: &InitArgs) -> Result<Done, Failure> {
    let path = &args.plan;
    let project = args.project.as_ref().map_or_else(|| project_of(path), ToString::to_string);
    let text = template::text(&project, &args.url);
    // Read before it is written, so that a wrong --url is found now.
    plan::check_text(path, &text, &Overrides::default(), &|_| Some(String::new()))?;
    write(path, &text, args.force)?;
    let text = format!(
        "Wrote {} for the project {project} at {}.\n\
         Next: put a real request into [workload], then\n  \
         plimsoll check\n  \
         plimsoll run --profile quick\n",
        path.display(),
        args.url
    );
    Ok(Done { exit: Exit::Pass, text, json: json!({ "plan": path, "project": project, "url": args.url }) })
}

fn write(path: &Path, text: &str, force: bool) -> Result<(), Failure> {
    let mut options = OpenOptions::new();
    options.write(true);
    match force {
        true => options.create(true).truncate(true),
        false => options.create_new(true),
    };
    let written = options.open(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            Failure::usage(format!("{} exists already", path.display())).hint("--force overwrites it")
        }
        _ => Failure::usage(format!("cannot write {}: {error}", path.display())),
    })
}

/// The folder's name as a project's name.
fn project_of(path: &Path) -> String {
    let folder = std::path::absolute(path).ok().and_then(|path| Some(path.parent()?.file_name()?.to_owned()));
    let name = folder.unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let slug: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' }).collect();
    let slug: String = slug.trim_start_matches(['-', '_', '.']).chars().take(64).collect();
    if slug.is_empty() { "my-service".to_owned() } else { slug }
}
