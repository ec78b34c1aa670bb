//! Where the service ran. A different fingerprint is a different testbed, and figures do not compare across.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ids::Digest;

/// The host of the service. What is not known is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Testbed {
    /// A name given by people, shown instead of the parts and part of the fingerprint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<Gpu>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_cores: Option<u32>,
    /// Rounded to whole GiB, so that a kernel's reserve does not make a new testbed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_gib: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub os: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Gpu {
    pub model: String,
    pub count: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_gib: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
}

impl Testbed {
    pub fn fingerprint(&self) -> Digest {
        Digest::of(self)
    }

    /// A short name: the given one, else `A10 ×1`, else `CPU 16-core`.
    pub fn label(&self) -> String {
        match (&self.name, &self.gpu, self.cpu_cores) {
            (Some(name), ..) => name.clone(),
            (None, Some(gpu), _) => format!("{} ×{}", gpu.model, gpu.count),
            (None, None, Some(cores)) => format!("CPU {cores}-core"),
            (None, None, None) => "unknown testbed".to_owned(),
        }
    }
}
