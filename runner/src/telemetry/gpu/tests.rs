use std::path::PathBuf;
use std::process::Command;

use super::*;

/// A stand-in for NVML, compiled from `stub.c`; a folder keeps it for as long as it is in use.
struct Stub(tempfile::TempDir);

impl Stub {
    fn with(define: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let stub = Self(folder);
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/telemetry/gpu/stub.c");
        let done = Command::new("cc")
            .args(["-shared", "-fPIC", "-Wall", "-Werror", define, source, "-o"])
            .arg(stub.path())
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        stub
    }

    fn path(&self) -> PathBuf {
        self.0.path().join(LIBRARY)
    }

    fn open(&self, visible: Option<&str>, selection: &[&str]) -> Result<Option<Gpus>, GpuError> {
        let selection: Vec<String> = selection.iter().map(|&name| name.to_owned()).collect();
        Gpus::of_library(Some(self.path().into()), visible, &selection)
    }
}

fn indices(gpus: Option<Gpus>) -> Vec<u32> {
    gpus.map_or_else(Vec::new, |gpus| gpus.sample().iter().map(|sample| sample.index).collect())
}

#[test]
fn what_a_gpu_does_not_tell_is_unknown_and_never_zero() {
    let stub = Stub::with("-DALL");
    let gpus = stub.open(None, &[]).unwrap().unwrap();
    let [first, silent, before, nameless] = &gpus.sample()[..] else { panic!("four GPUs") };
    assert_eq!((first.uuid.as_deref(), first.utilisation), (Some("GPU-aaaa-1"), Some(0.87)));
    assert_eq!((first.memory_used, first.memory_total), (Some(1000 << 20), Some(23_028 << 20)));
    assert_eq!((silent.utilisation, silent.memory_used), (None, Some(1000 << 20)), "not supported");
    assert_eq!(before.utilisation, Some(0.0), "idle is a figure");
    assert_eq!((&nameless.uuid, nameless.utilisation), (&None, Some(0.0)), "asked by its number");
    let lost = &gpus.sample()[2];
    assert_eq!((lost.index, lost.utilisation, lost.memory_used, lost.memory_total), (2, None, None, None));
}

#[test]
fn a_host_without_a_gpu_is_a_plain_case_and_a_broken_driver_is_not() {
    for define in ["-DNO_DRIVER", "-DNO_GPU"] {
        assert!(Stub::with(define).open(None, &[]).unwrap().is_none(), "{define}");
    }
    let broken = Stub::with("-DBROKEN").open(None, &[]).unwrap_err();
    assert!(matches!(broken, GpuError::Nvml(_)), "{broken}");
    let folder = tempfile::tempdir().unwrap();
    let nowhere = folder.path().join(LIBRARY);
    assert!(Gpus::of_library(Some(nowhere.into()), None, &[]).is_err(), "it was named, and is not there");
}

#[test]
fn gpus_are_chosen_by_index_by_uuid_and_as_cuda_does() {
    let stub = Stub::with("-DALL");
    for (visible, selection, chosen) in [
        (None, &[][..], &[0, 1, 2, 3][..]),
        (None, &["2", "GPU-aaaa-1"], &[2, 0]),
        (None, &["GPU-b"], &[2]),
        (Some("1"), &["3"], &[3]),
        (Some("2,0"), &[], &[2, 0]),
        (Some("GPU-bbbb-3, 1,1"), &[], &[2, 1]),
        (Some("0,-1,2"), &[], &[0]),
        (Some("0,GPU-aaaa"), &[], &[0]),
        (Some(""), &[], &[]),
    ] {
        assert_eq!(indices(stub.open(visible, selection).unwrap()), chosen, "{visible:?} {selection:?}");
    }
    let unknown = stub.open(None, &["GPU-aaaa"]).unwrap_err().to_string();
    assert!(unknown.contains("\"GPU-aaaa\"") && unknown.contains("2 (GPU-bbbb-3)"), "{unknown}");
}

#[test]
fn a_testbed_knows_its_gpus() {
    let stub = Stub::with("-DALL");
    let facts = |selection: &[&str]| stub.open(None, selection).unwrap().unwrap().facts().unwrap();
    let two = facts(&["0", "1"]);
    assert_eq!((two.model.as_str(), two.count, two.memory_gib), ("NVIDIA A10", 2, Some(22)));
    assert_eq!(two.driver.as_deref(), Some("550.54.15"));
    assert_eq!(facts(&["0", "3"]).model, "NVIDIA A10 + NVIDIA L20");
}
