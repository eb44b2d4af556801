//! Requests and answers over QUIC for `scripts/requests`: each on a connection of its own, one after the other.
//!
//! A request is the answer's length in eight octets. The time runs from the connect to the answer's last octet.

use crate::{client_config, ready, runtime, server_config, socket};
use anyhow::Context as _;
use quinn::{Connection, Endpoint, EndpointConfig, TokioRuntime};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

const REQUEST_BYTES: usize = 8;

/// The requests that a client makes.
pub(crate) struct Requests {
    pub(crate) count: usize,
    pub(crate) answer_bytes: u64,
    /// A request that takes longer is given up.
    pub(crate) patience: Duration,
}

/// Answers whoever asks, until it is interrupted.
pub(crate) fn answer(at: SocketAddr, certificate: &str, bbr: bool) -> anyhow::Result<()> {
    runtime()?.block_on(async {
        let config = server_config(certificate, bbr)?;
        let endpoint = Endpoint::new(EndpointConfig::default(), Some(config), socket(at)?, Arc::new(TokioRuntime))?;
        ready()?;
        loop {
            tokio::select! {
                incoming = endpoint.accept() => {
                    let incoming = incoming.context("the endpoint is closed")?;
                    // A client that gave up is no error of the server.
                    tokio::spawn(async move { incoming.await.map(answer_one)?.await });
                }
                _ = tokio::signal::ctrl_c() => return Ok(()),
            }
        }
    })
}

async fn answer_one(connection: Connection) -> anyhow::Result<()> {
    let (mut answer, mut request) = connection.accept_bi().await?;
    let mut length = [0; REQUEST_BYTES];
    request.read_exact(&mut length).await?;
    answer.write_all(&vec![0x5A; usize::try_from(u64::from_be_bytes(length))?]).await?;
    answer.finish()?;
    connection.closed().await;
    Ok(())
}

/// Makes the requests, and prints the seconds of each as JSON; `null` for one that was given up.
pub(crate) fn ask(to: SocketAddr, certificate: &str, bbr: bool, requests: &Requests) -> anyhow::Result<()> {
    runtime()?.block_on(async {
        let mut endpoint = Endpoint::new(
            EndpointConfig::default(),
            None,
            socket((Ipv4Addr::UNSPECIFIED, 0).into())?,
            Arc::new(TokioRuntime),
        )?;
        endpoint.set_default_client_config(client_config(certificate, bbr)?);
        let mut times = Vec::new();
        for _ in 0..requests.count {
            let begun = Instant::now();
            let one = tokio::time::timeout(requests.patience, ask_once(&endpoint, to, requests.answer_bytes));
            times.push(match one.await {
                Ok(Ok(())) => format!("{:.6}", begun.elapsed().as_secs_f64()),
                Ok(Err(_)) | Err(_) => "null".to_owned(),
            });
        }
        println!("[{}]", times.join(", "));
        Ok(())
    })
}

async fn ask_once(endpoint: &Endpoint, to: SocketAddr, answer_bytes: u64) -> anyhow::Result<()> {
    let connection = endpoint.connect(to, "localhost")?.await?;
    let (mut request, mut answer) = connection.open_bi().await?;
    request.write_all(&answer_bytes.to_be_bytes()).await?;
    request.finish()?;
    let mut left = answer_bytes;
    while left > 0 {
        let chunk = answer.read_chunk(1 << 16, true).await?.context("the answer is too short")?;
        left -= chunk.bytes.len() as u64;
    }
    connection.close(0_u32.into(), b"");
    Ok(())
}
