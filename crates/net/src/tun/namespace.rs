//! Named network namespaces, as `ip netns` knows them.

use super::error::TunError;
use super::ip_command::ip;
use super::owner::{self, Owner};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::os::fd::AsFd;
use std::path::PathBuf;

/// A network namespace; one that was made, or taken over, is removed when the value is dropped.
#[derive(Debug)]
pub(super) struct Namespace {
    name: String,
    handle: File,
    /// The proof of ownership, if we or a killed process of ours made it.
    owner: Option<Owner>,
    taken_over: bool,
}

impl Namespace {
    /// The namespace of that name, made if there is none, with its loopback interface up. One that a
    /// killed process of ours left behind is taken over.
    pub(super) fn open_or_make(name: &str) -> Result<Self, TunError> {
        // ip-netns(8): a named namespace is a file in this directory.
        let path = PathBuf::from("/run/netns").join(name);
        let wrong = |source| TunError::Namespace {
            name: name.to_owned(),
            source,
        };
        let was_there = path.exists();
        let owner = if was_there {
            owner::take_over(name, &path).map_err(wrong)?
        } else {
            ip(&format!("netns add {name}"))?;
            let made = Owner::of_made(name, &path).inspect_err(|_| {
                drop(ip(&format!("netns delete {name}")));
            });
            Some(made.map_err(wrong)?)
        };
        let handle = File::open(&path).map_err(|source| TunError::Namespace {
            name: name.to_owned(),
            source,
        })?;
        let namespace = Self {
            name: name.to_owned(),
            handle,
            taken_over: was_there && owner.is_some(),
            owner,
        };
        if namespace.made() {
            namespace.within(|| ip("link set dev lo up"))??;
        }
        Ok(namespace)
    }

    /// Whether it was made by us, or taken over as if it were.
    pub(super) const fn made(&self) -> bool {
        self.owner.is_some()
    }

    /// Whether a killed process of ours had made it.
    pub(super) const fn taken_over(&self) -> bool {
        self.taken_over
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
        if let Some(owner) = &self.owner {
            // Somebody may have removed it already; there is nobody left to tell.
            drop(ip(&format!("netns delete {}", self.name)));
            owner.end();
        }
    }
}
