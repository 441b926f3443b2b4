//! What a machine needs to know of an attempt that docker or podman runs, besides what every runtime does.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::task::Driver;

/// An attempt that runs in containers of images.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageLaunch {
    /// Who runs them.
    pub driver: ImageDriver,
    /// What runs, as the containers of the launch and in their order.
    pub containers: Vec<ImageContainer>,
}

/// One container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageContainer {
    /// The image.
    pub image: String,
    /// What follows its command, which the image may say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
}

/// A program that runs images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ImageDriver {
    /// Containers of a daemon.
    Docker,
    /// Containers without one.
    Podman,
}

impl ImageDriver {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Docker, Self::Podman];

    /// What the program is called.
    pub const fn program(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Podman => "podman",
        }
    }
}

impl fmt::Display for ImageDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.program())
    }
}

impl Driver {
    /// What runs the image, if it is an image that runs.
    pub const fn image_driver(self) -> Option<ImageDriver> {
        match self {
            Self::Exec => None,
            Self::Docker => Some(ImageDriver::Docker),
            Self::Podman => Some(ImageDriver::Podman),
        }
    }
}
