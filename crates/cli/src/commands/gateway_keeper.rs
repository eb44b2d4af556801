//! `fulmar gateway-keeper`: the process that `fulmar gateway` starts to hold its sockets. Not for people.

use crate::exit::{Exit, Failure, OrExit};
use anyhow::Context;
use fulmar_net::keeper::{KeeperConfig, run as keep};
use std::io::stdin;
use std::os::fd::AsFd;

/// The arguments of `fulmar gateway-keeper`: none.
#[derive(clap::Args, Debug)]
pub(crate) struct GatewayKeeperArgs {}

pub(crate) fn run(_args: &GatewayKeeperArgs) -> Result<Exit, Failure> {
    let listener = stdin().as_fd().try_clone_to_owned().or_exit(Exit::Usage)?;
    keep(&listener, KeeperConfig::default())
        .context("holding a gateway's connections; `fulmar gateway` starts this by itself")
        .or_exit(Exit::Usage)?;
    Ok(Exit::Done)
}
