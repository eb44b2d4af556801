//! Named network namespaces, as `ip netns` knows them.

use super::error::TunError;
use super::ip_command::ip;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::os::fd::AsFd;
use std::path::PathBuf;

/// A network namespace; one that was made is removed when the value is dropped.
#[derive(Debug)]
pub(super) struct Namespace {
    name: String,
    handle: File,
    made: bool,
}

impl Namespace {
    /// The namespace of that name, made if there is none, with its loopback interface up.
    pub(super) fn open_or_make(name: &str) -> Result<Self, TunError> {
        // ip-netns(8): a named namespace is a file in this directory.
        let path = PathBuf::from("/run/netns").join(name);
        let made = !path.exists();
        if made {
            ip(&format!("netns add {name}"))?;
        }
        let handle = File::open(&path).map_err(|source| TunError::Namespace {
            name: name.to_owned(),
            source,
        })?;
        let namespace = Self {
            name: name.to_owned(),
            handle,
            made,
        };
        if made {
            namespace.within(|| ip("link set dev lo up"))??;
        }
        Ok(namespace)
    }

    /// Whether it was made by us.
    pub(super) const fn made(&self) -> bool {
        self.made
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Does `work` on a thread inside the namespace; processes it starts are there as well.
    pub(super) fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, TunError> {
        let refused = |source| TunError::Namespace {
            name: self.name.clone(),
            source,
        };
        std::thread::scope(|scope| {
            let inside = scope.spawn(|| {
                let kind = Some(LinkNameSpaceType::Network);
                move_into_link_name_space(self.handle.as_fd(), kind)?;
                Ok::<T, rustix::io::Errno>(work())
            });
            let done = inside.join().expect("nothing in a namespace panics");
            done.map_err(|errno| refused(errno.into()))
        })
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if self.made {
            // Somebody may have removed it already; there is nobody left to tell.
            drop(ip(&format!("netns delete {}", self.name)));
        }
    }
}
