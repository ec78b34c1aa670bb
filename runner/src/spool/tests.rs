use plimsoll_domain::synthetic::Synthetic;

use super::*;

#[test]
fn a_revision_s_name_cannot_leave_the_folder() {
    let at = Timestamp::from_second(1_764_079_568).unwrap();
    assert_eq!(folder_name(at, Some("feature/../../x y")), "2025-11-25T14-06-08Z-feature_.._.._x_y");
    assert_eq!(folder_name(at, None), "2025-11-25T14-06-08Z-run");
}

#[test]
fn runs_of_the_same_second_have_folders_of_their_own() {
    let root = tempfile::tempdir().unwrap();
    let at = Timestamp::from_second(1_764_079_568).unwrap();
    let first = claim(root.path(), at, Some("v1")).unwrap();
    let second = claim(root.path(), at, Some("v1")).unwrap();
    assert!(first.ends_with("plimsoll/2025-11-25T14-06-08Z-v1/report.json"), "{first:?}");
    assert!(second.ends_with("plimsoll/2025-11-25T14-06-08Z-v1-2/report.json"), "{second:?}");
}

#[test]
fn a_place_that_cannot_be_written_is_found_before_the_run() {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("file"), "").unwrap();
    for path in ["file/report.json", "."] {
        assert_eq!(prepare(&root.path().join(path)).unwrap_err().exit, Exit::Usage, "{path}");
    }
    let pipe = root.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
    assert_eq!(prepare(&pipe).unwrap_err().exit, Exit::Usage);
    let good = root.path().join("new/report.json");
    prepare(&good).unwrap();
    assert_eq!(std::fs::read_dir(root.path().join("new")).unwrap().count(), 0, "the probe is gone");
}

#[test]
fn an_unfinished_run_leaves_an_earlier_report_alone_and_links_are_written_through() {
    let root = tempfile::tempdir().unwrap();
    let (file, link) = (root.path().join("keep.json"), root.path().join("link.json"));
    let whole = Synthetic::default().report();
    assert_eq!(write(&file, &whole).unwrap(), file);
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let mut cut = whole.clone();
    cut.status = Status::Interrupted;
    let beside = write(&link, &cut).unwrap();
    assert_ne!(beside, file);
    assert_eq!(read(&file).unwrap().status, Status::Complete);
    assert_eq!(read(&beside).unwrap().status, Status::Interrupted);
    write(&link, &whole).unwrap();
    assert!(link.is_symlink(), "the link is still one");
}

#[test]
fn a_report_whose_folder_is_gone_is_kept_elsewhere_and_that_is_said() {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("file"), "").unwrap();
    let nowhere = root.path().join("file/report.json");
    let report = Synthetic::default().report();
    let others = [root.path().join("file/state"), root.path().join("tmp")];
    let saved = save_or(&nowhere, &report, &others).unwrap();
    assert!(saved.path.starts_with(root.path().join("tmp")), "{saved:?}");
    assert_eq!(read(&saved.path).unwrap(), report);
    let said = saved.elsewhere.unwrap();
    assert!(said.contains("file/report.json") && said.contains(&saved.path.display().to_string()), "{said}");
    assert!(save_or(&nowhere, &report, &others[..1]).unwrap_err().message.contains("nor to another folder"));
}

#[test]
fn what_is_measured_so_far_is_a_report_until_the_report_itself_is_there() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("report.json");
    let mut cut = Synthetic::default().report();
    cut.status = Status::Interrupted;
    cut.phases.truncate(2);
    let mut partial = Partial::beside(&path).unwrap();
    partial.keep(cut.clone());
    partial.finish().unwrap();
    assert_eq!(read(&root.path().join("report.partial.json")).unwrap(), cut);
    // The next run of the same name does not take it away.
    let again = Partial::beside(&path).unwrap();
    assert!(!again.path().exists());
    assert_eq!(read(&aside(&path, &cut)).unwrap(), cut);
    again.keep(cut.clone());
    again.replaced();
    assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 1, "only what was put aside");
}

#[test]
fn a_disk_that_does_not_take_it_is_told_and_leaves_nothing_behind() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("folder");
    std::fs::create_dir_all(folder.join("report.partial.json/in the way")).unwrap();
    let mut partial = Partial::beside(&folder.join("report.json")).unwrap();
    partial.keep(Synthetic::default().report());
    assert!(partial.finish().is_err());
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "no temporary file");
}

#[test]
fn a_compressed_report_is_read_too_and_a_bomb_is_not() {
    use std::io::Write as _;
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("report.json.gz");
    let gzip = |bytes: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let zstd = |bytes: &[u8]| zstd::bulk::compress(bytes, 1).unwrap();
    let report = Synthetic::default().report();
    for pack in [&gzip as &dyn Fn(&[u8]) -> Vec<u8>, &zstd] {
        std::fs::write(&path, pack(report.to_json().as_bytes())).unwrap();
        assert_eq!(read(&path).unwrap(), report);
        std::fs::write(&path, pack(&vec![b' '; MAX_BYTES + 1])).unwrap();
        assert!(read(&path).unwrap_err().message.contains("64 MiB"));
    }
}
