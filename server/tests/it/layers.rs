//! What lies behind the edge does not know that it is asked by HTTP.

use std::fs::{read_dir, read_to_string};
use std::path::{Path, PathBuf};

#[test]
fn http_stays_at_the_edge() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let inner = ["tasks", "store", "charts", "outgoing", "state.rs"].map(|name| src.join(name));
    let files: Vec<PathBuf> = inner.into_iter().flat_map(files).collect();
    assert!(files.len() > 40, "the sources have moved: {files:?}");
    for file in files {
        let text = read_to_string(&file).unwrap();
        for word in ["axum", "StatusCode", "AppError", "crate::error"] {
            assert!(!text.contains(word), "{}: {word} belongs to the edge (api, web, access)", file.display());
        }
    }
}

fn files(at: PathBuf) -> Vec<PathBuf> {
    if at.is_file() {
        return vec![at];
    }
    let Ok(entries) = read_dir(&at) else { return Vec::new() };
    entries.flat_map(|entry| files(entry.unwrap().path())).collect()
}
