//! `fulmar init --pair`: the file of this machine, with the public key of the other one.

use super::files::{GatewayFile, WrittenFiles};
use super::terms::{End, Terms};
use super::{InitArgs, PORT, SCHEMA, advice, entropy, wrong};
use crate::commands::address::{resolve, resolve_remote};
use crate::exit::{Exit, Failure, OrExit};
use crate::output;
use crate::signals::Signals;
use anyhow::{Context, anyhow};
use fulmar_net::pairing::{
    CallerEvent, ListenerEvent, PairingCaller, PairingCode, PairingFailure, PairingListener,
    PairingPort, TERMS_BYTES_MAX, fingerprint,
};
use fulmar_net::session::SecretKey;
use fulmar_net::wait::{WakeUp, waker};
use fulmar_net::{Clock, PublicKey};
use serde_json::json;
use std::io::{self, BufRead, ErrorKind, IsTerminal, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// Times that a person may mistype a code.
const TYPED_MAX: u32 = 5;
/// A line with a code is shorter by far.
const LINE_BYTES_MAX: u64 = 256;

/// A socket, and what ends the wait at it.
struct Waiting {
    port: PairingPort,
    wake_up: WakeUp,
    signals: Signals,
}

impl Waiting {
    fn at(bind: impl FnOnce(Clock) -> Result<PairingPort, Failure>) -> Result<Self, Failure> {
        let (waker, wake_up) = waker().context("making a waker").or_exit(Exit::Device)?;
        Ok(Self {
            port: bind(Clock::start())?,
            wake_up,
            // What was written must go again.
            signals: Signals::catch_all(&[&waker])?,
        })
    }

    fn step(&self, end: &mut impl fulmar_net::pairing::PairingEnd) -> Result<(), Failure> {
        self.port
            .step(end, &self.wake_up)
            .context("pairing")
            .or_exit(Exit::Device)
    }
}

/// Waits for the call of the other machine.
///
/// # Errors
/// A name or a network cannot be; the port is in use; a file is there already, or cannot be written; too many codes were
/// wrong.
pub(super) fn listen(args: &InitArgs) -> Result<Exit, Failure> {
    let terms = args.terms()?;
    let key = SecretKey::generate(&mut entropy()?);
    let file = GatewayFile {
        terms: &terms,
        end: End::Called,
        allow: &args.allow,
        listen: args.listen.as_deref(),
        peer_address: None,
    };
    // Any peer's key does to see whether a gateway would take the file.
    file.check(&args.place, SecretKey::generate(&mut entropy()?).public())?;
    let sent = serde_json::to_vec(&terms).context("writing the terms as JSON")?;
    let listener = PairingListener::new(key.public(), sent, entropy()?);
    let mut listener = listener.ok_or_else(|| {
        let problem = format!(
            "--behind-called, --behind-caller: too many networks for {TERMS_BYTES_MAX} octets; pair with fewer, and write the others into both files"
        );
        wrong(anyhow!(problem))
    })?;
    let usual = format!(":{PORT}");
    let listen = args.listen.as_deref().unwrap_or(&usual);
    let waiting = Waiting::at(|clock| bind(listen, clock))?;
    let local = waiting
        .port
        .local()
        .context("--listen")
        .or_exit(Exit::Device)?;
    show_listening(args, local, &listener)?;
    loop {
        if let Some(exit) = waiting.signals.exit() {
            return Ok(exit);
        }
        waiting.step(&mut listener)?;
        match listener.poll_event() {
            Some(ListenerEvent::WrongCode { left }) => {
                let told = format!(
                    "somebody called with a wrong code, so it is spent ({left} more wrong ones end this)"
                );
                show_code(args, ("wrong_code", &told), Some(left), &listener)?;
            }
            Some(ListenerEvent::CallerSilent) => {
                let told = "the other end had the code and fell silent, so it is spent; nothing is written";
                show_code(args, ("silent", told), None, &listener)?;
            }
            Some(ListenerEvent::TooManyWrongCodes) => {
                let problem = "too many wrong codes: somebody may be guessing; nothing is written, run it again to go on";
                return Err(anyhow!(problem).into());
            }
            Some(ListenerEvent::Agreed(peer)) => {
                let written = file.write(&args.place, &key, peer);
                match written {
                    Ok(files) => {
                        listener.written(waiting.port.now());
                        show_paired(args, &file, files, [key.public(), peer])?;
                        answer_on(&waiting, &mut listener)?;
                        return Ok(Exit::Done);
                    }
                    Err(failure) => {
                        listener.not_written(waiting.port.now());
                        answer_on(&waiting, &mut listener)?;
                        return Err(failure);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Answers a caller that did not hear the last answer, for a while or until a signal.
fn answer_on(waiting: &Waiting, listener: &mut PairingListener) -> Result<(), Failure> {
    while listener.poll_event() != Some(ListenerEvent::Over) && waiting.signals.exit().is_none() {
        waiting.step(listener)?;
    }
    Ok(())
}

fn bind(listen: &str, clock: Clock) -> Result<PairingPort, Failure> {
    let at = resolve("--listen", listen)?;
    // A machine may be without IPv6.
    let of_ipv4 = SocketAddr::from((Ipv4Addr::UNSPECIFIED, at.port()));
    let bound = PairingPort::bind(at, clock).or_else(|error| match error.kind() {
        ErrorKind::AddrInUse | ErrorKind::PermissionDenied => Err(error),
        _ if at.ip() == Ipv6Addr::UNSPECIFIED => PairingPort::bind(of_ipv4, clock),
        _ => Err(error),
    });
    bound.map_err(|error| {
        let cause = match error.kind() {
            ErrorKind::AddrInUse => anyhow!(
                "UDP port {} is in use: a gateway may run here, stop it while the machines pair; or name another port with --listen",
                at.port()
            ),
            _ => anyhow::Error::new(error).context(format!("--listen {listen}")),
        };
        Failure {
            exit: Exit::Device,
            cause,
        }
    })
}

fn show_listening(
    args: &InitArgs,
    local: SocketAddr,
    listener: &PairingListener,
) -> Result<(), Failure> {
    if args.json {
        let code = listener.code().to_string();
        return output::record(
            &json!({"schema": SCHEMA, "kind": "code", "listening": local, "code": code}),
        );
    }
    let port = match local.port() {
        PORT => String::new(),
        port => format!(":{port}"),
    };
    eprintln!(
        "fulmar: waiting at UDP port {}. At the other machine, with the address at which it reaches this one:\n  \
         fulmar init --pair --called ADDRESS{port}\n\
         It asks for this code, which is good for one try: {}",
        local.port(),
        listener.code()
    );
    Ok(())
}

/// Says why there is another code: as the kind of a record, and in words. `left`: wrong codes until the end.
fn show_code(
    args: &InitArgs,
    (kind, told): (&str, &str),
    left: Option<u8>,
    listener: &PairingListener,
) -> Result<(), Failure> {
    let code = listener.code().to_string();
    if args.json {
        return output::record(
            &json!({"schema": SCHEMA, "kind": kind, "code": code, "left": left}),
        );
    }
    eprintln!("fulmar: {told}. The new code: {code}");
    Ok(())
}

/// Calls the other machine.
///
/// # Errors
/// The address has no host; the code is none, or wrong; nobody answers; a file is there already, or cannot be written.
pub(super) fn call(args: &InitArgs, called: &str) -> Result<Exit, Failure> {
    if !args.has_usual_terms() {
        let problem = "--pair --called: the machine that is called says what both are called and carry; give --names, --network, \
                       --behind-called, --behind-caller and --proxy there";
        return Err(wrong(anyhow!(problem)));
    }
    let remote = resolve_remote("--called", called)?;
    let code = ask_code(called, args.json)?;
    let key = SecretKey::generate(&mut entropy()?);
    let waiting = Waiting::at(|clock| {
        let any = match remote {
            SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
        };
        PairingPort::bind(any, clock)
            .context("pairing")
            .or_exit(Exit::Device)
    })?;
    let now = waiting.port.now();
    let mut caller = PairingCaller::new(key.public(), remote, code, entropy()?, now);
    let mut agreed = None;
    loop {
        if let Some(exit) = waiting.signals.exit() {
            if agreed.is_some() {
                eprintln!("fulmar: {}", PairingFailure::Unacknowledged);
            }
            return Ok(exit);
        }
        waiting.step(&mut caller)?;
        match caller.poll_event() {
            Some(CallerEvent::Agreed { peer, terms }) => {
                let terms = read_terms(&terms)?;
                let files = {
                    let file = caller_file(&terms, called);
                    file.check(&args.place, peer)?;
                    file.write(&args.place, &key, peer)?
                };
                agreed = Some((terms, peer, files));
                caller.written(waiting.port.now());
            }
            Some(CallerEvent::Paired) => {
                if let Some((terms, peer, files)) = agreed {
                    let file = caller_file(&terms, called);
                    show_paired(args, &file, files, [peer, key.public()])?;
                }
                return Ok(Exit::Done);
            }
            Some(CallerEvent::Failed(failure)) => return Err(failed(called, failure)),
            _ => {}
        }
    }
}

fn caller_file<'a>(terms: &'a Terms, called: &'a str) -> GatewayFile<'a> {
    GatewayFile {
        terms,
        end: End::Caller,
        allow: &[],
        listen: None,
        peer_address: Some(called),
    }
}

/// The terms that the called end sent, which may be of another release.
fn read_terms(octets: &[u8]) -> Result<Terms, Failure> {
    let source = "the terms of the other end";
    let terms: Terms = serde_json::from_slice(octets)
        .with_context(|| {
            format!("{source} are not understood: install the same fulmar at both ends")
        })
        .or_exit(Exit::Unreachable)?;
    terms.check(source)?;
    Ok(terms)
}

fn failed(called: &str, failure: PairingFailure) -> Failure {
    let exit = match failure {
        PairingFailure::Silent | PairingFailure::Unacknowledged => Exit::LinkLost,
        _ => Exit::Unreachable,
    };
    Failure {
        exit,
        cause: anyhow::Error::new(failure)
            .context(format!("pairing with {called}; nothing is written")),
    }
}

/// Asks for the code: of a person, or of the next line of standard input.
fn ask_code(called: &str, is_json: bool) -> Result<PairingCode, Failure> {
    let is_person = io::stdin().is_terminal();
    let mut typed = 0;
    loop {
        typed += 1;
        if is_person && !is_json {
            eprint!("The code that `fulmar init --pair` shows at {called}: ");
            io::stderr().flush().context("asking for the code")?;
        }
        let mut line = String::new();
        let mut stdin = io::Read::take(io::stdin().lock(), LINE_BYTES_MAX);
        stdin.read_line(&mut line).context("reading the code")?;
        match line.parse() {
            Ok(code) => return Ok(code),
            Err(error) if is_person && typed < TYPED_MAX && !line.is_empty() => {
                eprintln!("fulmar: {error}");
            }
            Err(error) => {
                return Err(wrong(anyhow!(
                    "the code is asked for, or read from standard input: {error}"
                )));
            }
        }
    }
}

/// Keeps the files, and says what was made and what comes next. `keys`: of the called end, and of the caller.
fn show_paired(
    args: &InitArgs,
    file: &GatewayFile<'_>,
    files: WrittenFiles,
    keys: [PublicKey; 2],
) -> Result<(), Failure> {
    let paths = files.keep();
    let fingerprint = fingerprint(&keys[0], &keys[1]);
    let terms = file.terms;
    let peer = terms.name(file.end.other());
    let peer_key = match file.end {
        End::Called => keys[1],
        End::Caller => keys[0],
    };
    if args.json {
        return output::record(&json!({
            "schema": SCHEMA,
            "kind": "paired",
            "name": terms.name(file.end),
            "peer": peer,
            "peer_public_key": peer_key.to_string(),
            "fingerprint": fingerprint,
            "files": paths,
        }));
    }
    for path in &paths {
        output::line(&path.display().to_string())?;
    }
    eprintln!(
        "fulmar: paired with {peer}. Fingerprint of both keys, the same at both ends: {fingerprint}"
    );
    if file.end == End::Caller {
        // The other end's choice.
        eprintln!("this end carries: {}", terms.line(file.end, &[]));
    }
    eprintln!("  {}", advice::start(terms, &file.folder(&args.place)));
    eprintln!("Then, {}; {}", advice::proof(terms), advice::page());
    for line in advice::needs(terms, file.end, &args.allow) {
        eprintln!("{line}");
    }
    Ok(())
}
