//! The testbed: facts of this host when the service runs on it, else what people say.

use plimsoll_domain::finding::Finding;
use plimsoll_domain::testbed::Testbed;
use url::{Host, Url};

use crate::plan::Names;
use crate::telemetry::gpu::Gpus;

/// Where the service at `url` runs. The finding says so when nothing is known, or not what its GPUs are. `gpus` are those
/// that the service may use, as [`Gpus::open`] takes them.
pub fn testbed(url: &Url, names: &Names, gpus: &[String]) -> (Testbed, Option<Finding>) {
    let (mut testbed, silent) = if is_here(url) { this_host(gpus) } else { (Testbed::default(), None) };
    testbed.name.clone_from(&names.name);
    testbed.labels.clone_from(&names.labels);
    let unknown = (testbed == Testbed::default()).then(|| {
        Finding::notice("unknown_testbed", "Nothing is known about the host of the service.").with_advice(
            "Name it with --testbed or [testbed] in the plan; runs on hosts without a name all count as one testbed.",
        )
    });
    (testbed, unknown.or(silent))
}

/// Whether the service runs on this host.
pub fn is_here(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback() || address.is_unspecified(),
        Some(Host::Ipv6(address)) => {
            address.is_loopback()
                || address.is_unspecified()
                || address.to_ipv4_mapped().is_some_and(|mapped| mapped.is_loopback())
        }
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        None => false,
    }
}

fn this_host(gpus: &[String]) -> (Testbed, Option<Finding>) {
    let (gpu, silent) = match Gpus::open(gpus) {
        Ok(gpus) => (gpus.and_then(|gpus| gpus.facts()), None),
        Err(error) => {
            let finding =
                Finding::notice("gpu_unknown", format!("The testbed is described without its GPUs: {error}."));
            (None, Some(finding.with_advice("Run nvidia-smi on this host: it says what is wrong with the driver.")))
        }
    };
    (Testbed { gpu, ..without_gpu() }, silent)
}

fn without_gpu() -> Testbed {
    use sysinfo::{CpuRefreshKind, MemoryRefreshKind, RefreshKind, System};
    let wanted =
        RefreshKind::nothing().with_cpu(CpuRefreshKind::nothing()).with_memory(MemoryRefreshKind::nothing().with_ram());
    let Ok(system) = System::new_with_specifics(wanted) else {
        return Testbed::default();
    };
    let model = system.cpus().first().map(|cpu| cpu.brand().trim().to_owned()).filter(|brand| !brand.is_empty());
    let cores = u32::try_from(system.cpus().len()).ok().filter(|cores| *cores > 0);
    let gib = (system.total_memory() as f64 / f64::from(1 << 30)).round() as u32;
    Testbed {
        cpu_model: model,
        cpu_cores: cores,
        memory_gib: (gib > 0).then_some(gib),
        os: os_name(&std::fs::read_to_string("/etc/os-release").unwrap_or_default()),
        ..Testbed::default()
    }
}

/// `PRETTY_NAME` of an os-release file.
fn os_name(release: &str) -> Option<String> {
    let value = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    let name = value.trim().trim_matches(['"', '\'']).to_owned();
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_host_s_addresses_are_here() {
        for (address, here) in [
            ("http://127.0.0.1:8000/", true),
            ("http://127.9.9.9/", true),
            ("http://localhost:1/", true),
            ("http://a.localhost/", true),
            ("http://[::1]:8000/", true),
            ("http://[::ffff:127.0.0.1]/", true),
            ("http://0.0.0.0:8000/", true),
            ("http://10.0.0.1/", false),
            ("http://localhost.example/", false),
        ] {
            assert_eq!(is_here(&Url::parse(address).unwrap()), here, "{address}");
        }
    }

    #[test]
    fn an_unnamed_far_host_is_said_to_be_unknown() {
        let far = Url::parse("http://models.example/").unwrap();
        let (testbed, finding) = testbed(&far, &Names::default(), &[]);
        assert_eq!(testbed, Testbed::default());
        assert_eq!(finding.unwrap().code, "unknown_testbed");
        let named = Names { name: Some("a10".to_owned()), ..Names::default() };
        assert!(super::testbed(&far, &named, &[]).1.is_none());
    }

    #[test]
    fn the_name_of_the_system_is_read() {
        assert_eq!(os_name("ID=debian\nPRETTY_NAME=\"Debian GNU/Linux 12\"\n").as_deref(), Some("Debian GNU/Linux 12"));
        assert_eq!(os_name("ID=debian"), None);
    }
}
