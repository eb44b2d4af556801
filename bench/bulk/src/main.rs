//! Bulk data for `scripts/speed` and `scripts/side-by-side`: a QUIC stream (quinn) or a TCP connection, both ends in turn.
//! Requests and answers over QUIC for `scripts/requests` are in `requests`, messages for `scripts/thin-flows` in `messages`.
//!
//! The octets are one block of pseudo-random data over and over. A sink counts the octets that come, and
//! prints the count as JSON; a QUIC sink also when it is interrupted. quinn runs on one thread at each end,
//! with CUBIC, its default, or its BBR, and TLS_AES_128_GCM (ring), and with flow-control windows wide
//! enough not to matter on a loopback.

mod messages;
mod requests;

use anyhow::{Context as _, bail};
use quinn::congestion::BbrConfig;
use quinn::{ClientConfig, Connection, Endpoint, EndpointConfig, ServerConfig, TokioRuntime, TransportConfig, VarInt};
use ring::digest::{Context, SHA256};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const BLOCK_BYTES: usize = 1 << 16;
const WINDOW_BYTES: u32 = 64 << 20;
const SOCKET_BUFFER_BYTES: usize = 4 << 20;
/// Longer than any measurement: a link that loses half of all packets does not end the connection, as it does not end TCP's.
const IDLE_MILLISECONDS_MAX: u32 = 120_000;
const USAGE: &str = "usage: bulk tcp-source ADDRESS BYTES | tcp-sink ADDRESS | quic-source ADDRESS BYTES CERTIFICATE [bbr] \
    | quic-sink ADDRESS CERTIFICATE | hashed-source ADDRESS SECONDS | hashed-sink ADDRESS \
    | quic-answers ADDRESS CERTIFICATE [bbr] | quic-requests ADDRESS CERTIFICATE COUNT BYTES PATIENCE_SECONDS [bbr] \
    | quic-messages-source ADDRESS CERTIFICATE SECONDS [bbr] | quic-messages-sink ADDRESS CERTIFICATE \
    | flows-source ADDRESS COUNT SECONDS | flows-sink ADDRESS COUNT SKIPPED_SECONDS COUNTED_SECONDS";

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["tcp-source", to, bytes] => tcp_source(to.parse()?, bytes.parse()?),
        ["tcp-sink", at] => tcp_sink(at.parse()?),
        ["quic-source", to, bytes, certificate] => runtime()?.block_on(quic_source(to.parse()?, bytes.parse()?, certificate, false)),
        ["quic-source", to, bytes, certificate, "bbr"] => runtime()?.block_on(quic_source(to.parse()?, bytes.parse()?, certificate, true)),
        ["quic-sink", at, certificate] => runtime()?.block_on(quic_sink(at.parse()?, certificate)),
        ["quic-answers", at, certificate] => requests::answer(at.parse()?, certificate, false),
        ["quic-answers", at, certificate, "bbr"] => requests::answer(at.parse()?, certificate, true),
        ["quic-requests", to, certificate, count, bytes, patience, ref control @ ..] => {
            let wanted = requests::Requests {
                count: count.parse()?,
                answer_bytes: bytes.parse()?,
                patience: Duration::from_secs(patience.parse()?),
            };
            requests::ask(to.parse()?, certificate, control == ["bbr"], &wanted)
        }
        ["quic-messages-source", to, certificate, seconds, ref control @ ..] => {
            messages::write(to.parse()?, certificate, control == ["bbr"], Duration::from_secs(seconds.parse()?))
        }
        ["quic-messages-sink", at, certificate] => messages::read(at.parse()?, certificate),
        ["hashed-source", to, seconds] => hashed_source(to.parse()?, Duration::from_secs(seconds.parse()?)),
        ["hashed-sink", at] => hashed_sink(at.parse()?),
        ["flows-source", to, count, seconds] => flows_source(to.parse()?, count.parse()?, Duration::from_secs(seconds.parse()?)),
        ["flows-sink", at, count, skipped, counted] => {
            let [skipped, counted] = [skipped, counted].map(str::parse);
            flows_sink(
                at.parse()?,
                count.parse()?,
                Duration::from_secs(skipped?),
                Duration::from_secs(counted?),
            )
        }
        _ => bail!(USAGE),
    }
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

/// Octets that cannot be compressed.
fn block() -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut octets = Vec::with_capacity(BLOCK_BYTES);
    while octets.len() < BLOCK_BYTES {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        octets.extend_from_slice(&state.to_le_bytes());
    }
    octets
}

/// Prints that a sink is ready, so that nobody needs to guess.
fn ready() -> anyhow::Result<()> {
    println!("ready");
    Ok(std::io::stdout().flush()?)
}

/// Prints the octets, and the time from the first octet's arrival to the end's.
fn report(bytes: u64, first: Option<Instant>) {
    let seconds = first.map_or(0.0, |first| first.elapsed().as_secs_f64());
    println!("{{\"bytes\": {bytes}, \"seconds\": {seconds:.6}}}");
}

fn tcp_source(to: SocketAddr, bytes: u64) -> anyhow::Result<()> {
    let mut stream = TcpStream::connect(to)?;
    let block = block();
    let mut left = bytes;
    while left > 0 {
        let now = usize::try_from(left).unwrap_or(usize::MAX).min(block.len());
        stream.write_all(&block[..now])?;
        left -= now as u64;
    }
    stream.shutdown(std::net::Shutdown::Write)?;
    // Closing comes after the other end has read everything.
    let _ = stream.read(&mut [0])?;
    Ok(())
}

fn tcp_sink(at: SocketAddr) -> anyhow::Result<()> {
    let listener = TcpListener::bind(at)?;
    ready()?;
    let (mut stream, _) = listener.accept()?;
    let mut buffer = vec![0; BLOCK_BYTES];
    let (mut bytes, mut first) = (0, None);
    loop {
        let taken = stream.read(&mut buffer)?;
        if taken == 0 {
            break;
        }
        first.get_or_insert_with(Instant::now);
        bytes += taken as u64;
    }
    report(bytes, first);
    Ok(())
}

/// Sends octets without a period for as long as the span lasts; prints their number and their digest.
fn hashed_source(to: SocketAddr, span: Duration) -> anyhow::Result<()> {
    let mut stream = TcpStream::connect(to)?;
    let mut block = block();
    let mut digest = Context::new(&SHA256);
    let (begun, mut bytes) = (Instant::now(), 0_u64);
    while begun.elapsed() < span {
        // No two blocks are the same.
        block[..8].copy_from_slice(&bytes.to_le_bytes());
        digest.update(&block);
        stream.write_all(&block)?;
        bytes += block.len() as u64;
    }
    stream.shutdown(std::net::Shutdown::Write)?;
    let _ = stream.read(&mut [0])?;
    println!("{{\"bytes\": {bytes}, \"digest\": \"{}\"}}", hex(digest));
    Ok(())
}

fn hashed_sink(at: SocketAddr) -> anyhow::Result<()> {
    let listener = TcpListener::bind(at)?;
    ready()?;
    let (mut stream, _) = listener.accept()?;
    let mut buffer = vec![0; BLOCK_BYTES];
    let mut digest = Context::new(&SHA256);
    let (mut bytes, mut first) = (0_u64, None);
    loop {
        let taken = stream.read(&mut buffer)?;
        if taken == 0 {
            break;
        }
        first.get_or_insert_with(Instant::now);
        digest.update(&buffer[..taken]);
        bytes += taken as u64;
    }
    let seconds = first.map_or(0.0, |first| first.elapsed().as_secs_f64());
    println!("{{\"bytes\": {bytes}, \"seconds\": {seconds:.6}, \"digest\": \"{}\"}}", hex(digest));
    Ok(())
}

fn hex(digest: Context) -> String {
    digest.finish().as_ref().iter().map(|octet| format!("{octet:02x}")).collect()
}

/// Many connections, each with more to send than passes.
fn flows_source(to: SocketAddr, count: usize, span: Duration) -> anyhow::Result<()> {
    let until = Instant::now() + span;
    let flow = move || -> anyhow::Result<()> {
        let mut stream = TcpStream::connect(to)?;
        let block = block();
        while Instant::now() < until {
            stream.write_all(&block)?;
        }
        Ok(())
    };
    let threads: Vec<_> = (0..count).map(|_| std::thread::spawn(flow)).collect();
    for thread in threads {
        // The sink goes away in the midst of it.
        let _ = thread.join();
    }
    Ok(())
}

/// Counts the octets of each connection in the span `counted`, which begins `skipped` after all have
/// connected.
fn flows_sink(at: SocketAddr, count: usize, skipped: Duration, counted: Duration) -> anyhow::Result<()> {
    let listener = TcpListener::bind(at)?;
    ready()?;
    let flows: Vec<Arc<AtomicU64>> = (0..count).map(|_| Arc::default()).collect();
    for flow in &flows {
        let (mut stream, _) = listener.accept()?;
        let flow = Arc::clone(flow);
        std::thread::spawn(move || {
            let mut buffer = vec![0; BLOCK_BYTES];
            while let Ok(taken @ 1..) = stream.read(&mut buffer) {
                flow.fetch_add(taken as u64, Ordering::Relaxed);
            }
        });
    }
    let now = || -> Vec<u64> { flows.iter().map(|flow| flow.load(Ordering::Relaxed)).collect() };
    std::thread::sleep(skipped);
    let before = now();
    std::thread::sleep(counted);
    let bytes: Vec<u64> = now().iter().zip(before).map(|(after, before)| after - before).collect();
    println!("{{\"bytes\": {bytes:?}}}");
    Ok(())
}

fn transport(bbr: bool) -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    if bbr {
        config.congestion_controller_factory(Arc::new(BbrConfig::default()));
    }
    config
        .stream_receive_window(VarInt::from_u32(WINDOW_BYTES))
        .receive_window(VarInt::from_u32(WINDOW_BYTES))
        .send_window(u64::from(WINDOW_BYTES))
        .max_idle_timeout(Some(VarInt::from_u32(IDLE_MILLISECONDS_MAX).into()));
    Arc::new(config)
}

/// A socket with buffers as large as Fulmar asks for.
fn socket(at: SocketAddr) -> anyhow::Result<UdpSocket> {
    let socket = UdpSocket::bind(at)?;
    let options = socket2::SockRef::from(&socket);
    options.set_recv_buffer_size(SOCKET_BUFFER_BYTES)?;
    options.set_send_buffer_size(SOCKET_BUFFER_BYTES)?;
    Ok(socket)
}

/// Only the suite that QUIC implementations prefer on processors with AES instructions.
fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    let mut provider = rustls::crypto::ring::default_provider();
    provider
        .cipher_suites
        .retain(|suite| suite.suite() == rustls::CipherSuite::TLS13_AES_128_GCM_SHA256);
    Arc::new(provider)
}

/// A client that trusts the certificate alone.
fn client_config(certificate: &str, bbr: bool) -> anyhow::Result<ClientConfig> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(std::fs::read(certificate).context("the certificate")?.into())?;
    let tls = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut config = ClientConfig::new(Arc::new(quinn::crypto::rustls::QuicClientConfig::try_from(tls)?));
    config.transport_config(transport(bbr));
    Ok(config)
}

/// A server with a certificate of its own, which it writes down for the client.
fn server_config(certificate: &str, bbr: bool) -> anyhow::Result<ServerConfig> {
    let own = rcgen::generate_simple_self_signed(vec!["localhost".into()])?;
    std::fs::write(certificate, own.cert.der())?;
    let key = rustls::pki_types::PrivateKeyDer::Pkcs8(own.signing_key.serialize_der().into());
    let tls = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key)?;
    let mut config = ServerConfig::with_crypto(Arc::new(quinn::crypto::rustls::QuicServerConfig::try_from(tls)?));
    config.transport_config(transport(bbr));
    Ok(config)
}

async fn quic_source(to: SocketAddr, bytes: u64, certificate: &str, bbr: bool) -> anyhow::Result<()> {
    let config = client_config(certificate, bbr)?;
    let endpoint = Endpoint::new(
        EndpointConfig::default(),
        None,
        socket((Ipv4Addr::UNSPECIFIED, 0).into())?,
        Arc::new(TokioRuntime),
    )?;
    let connection = endpoint.connect_with(config, to, "localhost")?.await?;
    let mut stream = connection.open_uni().await?;
    let block = block();
    let mut left = bytes;
    while left > 0 {
        let now = usize::try_from(left).unwrap_or(usize::MAX).min(block.len());
        stream.write_all(&block[..now]).await?;
        left -= now as u64;
    }
    stream.finish()?;
    stream.stopped().await?;
    connection.close(0_u32.into(), b"");
    endpoint.wait_idle().await;
    Ok(())
}

async fn quic_sink(at: SocketAddr, certificate: &str) -> anyhow::Result<()> {
    let config = server_config(certificate, false)?;
    let endpoint = Endpoint::new(EndpointConfig::default(), Some(config), socket(at)?, Arc::new(TokioRuntime))?;
    ready()?;
    let mut arrived = Arrived::default();
    let mut interrupted = pin!(tokio::signal::ctrl_c());
    let received = tokio::select! {
        received = receive(&endpoint, &mut arrived) => Some(received),
        _ = &mut interrupted => None,
    };
    report(arrived.bytes, arrived.first);
    if let Some(connection) = received.transpose()? {
        tokio::select! {
            _ = connection.closed() => {}
            _ = interrupted => {}
        }
    }
    Ok(())
}

/// Octets that came in order, and the time of the first.
#[derive(Default)]
struct Arrived {
    bytes: u64,
    first: Option<Instant>,
}

/// Reads one stream to its end; the connection stays open, so that its last acknowledgements go out.
async fn receive(endpoint: &Endpoint, arrived: &mut Arrived) -> anyhow::Result<Connection> {
    let connection = endpoint.accept().await.context("no connection")?.await?;
    let mut stream = connection.accept_uni().await?;
    while let Some(chunk) = stream.read_chunk(BLOCK_BYTES, true).await? {
        arrived.first.get_or_insert_with(Instant::now);
        arrived.bytes += chunk.bytes.len() as u64;
    }
    Ok(connection)
}
