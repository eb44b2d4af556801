//! A message every 20 ms over one QUIC stream for `scripts/thin-flows`: the time from each one's writing to its reading.
//!
//! Both ends are on one machine, so they have one clock. The first octets of a message are the time of its writing.

use crate::{client_config, ready, runtime, server_config, socket};
use anyhow::Context as _;
use quinn::{Endpoint, EndpointConfig, TokioRuntime};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const MESSAGE_BYTES: usize = 1_200;
const EVERY: Duration = Duration::from_millis(20);
/// The last messages are repeated for so long, if they are lost.
const REPAIRED_WITHIN: Duration = Duration::from_secs(3);

fn now() -> anyhow::Result<u64> {
    Ok(u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_micros())?)
}

/// Writes messages for as long as the span lasts.
pub(crate) fn write(to: SocketAddr, certificate: &str, bbr: bool, span: Duration) -> anyhow::Result<()> {
    runtime()?.block_on(async {
        let mut endpoint = Endpoint::new(
            EndpointConfig::default(),
            None,
            socket((Ipv4Addr::UNSPECIFIED, 0).into())?,
            Arc::new(TokioRuntime),
        )?;
        endpoint.set_default_client_config(client_config(certificate, bbr)?);
        let connection = endpoint.connect(to, "localhost")?.await?;
        let mut stream = connection.open_uni().await?;
        let mut due = tokio::time::interval(EVERY);
        for _ in 0..span.as_micros() / EVERY.as_micros() {
            due.tick().await;
            let mut message = [0; MESSAGE_BYTES];
            message[..8].copy_from_slice(&now()?.to_be_bytes());
            stream.write_all(&message).await?;
        }
        stream.finish()?;
        // A reader that went away in time has read everything.
        let _ = tokio::time::timeout(REPAIRED_WITHIN, stream.stopped()).await;
        Ok(())
    })
}

/// Reads the messages of one stream, and prints the microseconds that each took as JSON.
pub(crate) fn read(at: SocketAddr, certificate: &str) -> anyhow::Result<()> {
    runtime()?.block_on(async {
        let config = server_config(certificate, false)?;
        let endpoint = Endpoint::new(EndpointConfig::default(), Some(config), socket(at)?, Arc::new(TokioRuntime))?;
        ready()?;
        let connection = endpoint.accept().await.context("no connection")?.await?;
        let mut stream = connection.accept_uni().await?;
        let (mut message, mut delays) = ([0; MESSAGE_BYTES], Vec::new());
        while stream.read_exact(&mut message).await.is_ok() {
            let written = u64::from_be_bytes(message[..8].try_into()?);
            delays.push(now()?.saturating_sub(written));
        }
        println!("{delays:?}");
        connection.closed().await;
        Ok(())
    })
}
