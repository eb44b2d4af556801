//! `fulmar init`: the files of two gateways, with their keys.

mod advice;
mod files;
mod pair;
mod terms;

use super::address::with_port;
use crate::exit::{Exit, Failure, OrExit};
use crate::output;
use anyhow::{Context, anyhow};
use files::GatewayFile;
use fulmar_net::gateway::config::Place;
use fulmar_net::session::{Entropy, SecretKey};
use fulmar_net::tun::InterfaceAddress;
use serde_json::json;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::PathBuf;
use terms::{Carried, End, Network, Terms};

const EXAMPLES: &str = "\
Examples:
  fulmar init --pair
      at the machine that can be reached: shows a code, and writes this machine's file once the other one has called with it
  fulmar init --pair --called 203.0.113.10
      at the other machine: asks for that code and writes this machine's file; no key leaves either machine but the public ones
  fulmar init --called 203.0.113.10
      writes ground/ and air/: a tunnel for any packet between two machines, of which the second calls the first
  fulmar init --called 203.0.113.10 --behind-called 10.20.0.0/16
      also reaches the network behind the first machine
  fulmar init --called 203.0.113.10 --proxy
      without root: a SOCKS5 proxy at the second machine, for browsers, ssh and curl

docs/guide/gateway.md says what the files mean.
";

/// The UDP port of gateways.
const PORT: u16 = 4914;
/// Where the page is, and what `fulmar top` watches.
const PAGE: &str = "127.0.0.1:9490";
/// Where the proxy listens.
const PROXY: &str = "127.0.0.1:1080";
/// The file of a gateway in its folder.
const FILE: &str = "fulmar.toml";
const SCHEMA: &str = "fulmar.init/1";
const NAMES: &str = "ground,air";
const NETWORK: &str = "10.90.0.0/24";

/// The arguments of `fulmar init`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub(crate) struct InitArgs {
    /// The folder that gets a folder for each end.
    #[arg(value_name = "DIR", default_value = ".")]
    place: PathBuf,
    /// Make the file of this machine alone, and exchange public keys with the other machine under a code that one person reads out
    /// and the other types. Without --called this machine is the first one: it waits for the call.
    #[arg(long)]
    pair: bool,
    /// The address at which the second machine reaches the first; asked for where a person looks. UDP port 4914 unless it names one.
    #[arg(long, value_name = "HOST[:PORT]")]
    called: Option<String>,
    /// With --pair, where the first machine waits for the call, and its gateway for its peer later; a missing host is every address.
    #[arg(
        long,
        value_name = "ADDR:PORT",
        requires = "pair",
        conflicts_with = "called"
    )]
    listen: Option<String>,
    /// The names of the first end, which is called, and of the second.
    #[arg(
        long,
        value_name = "NAME,NAME",
        value_delimiter = ',',
        default_value = NAMES
    )]
    names: Vec<String>,
    /// The network of the tunnel; its first two addresses are the ends.
    #[arg(
        long,
        value_name = "NET",
        default_value = NETWORK,
        conflicts_with = "proxy"
    )]
    network: InterfaceAddress,
    /// A network behind the first machine that the tunnel reaches; may be given several times.
    #[arg(long, value_name = "NET", conflicts_with = "proxy")]
    behind_called: Vec<InterfaceAddress>,
    /// A network behind the second machine that the tunnel reaches; may be given several times.
    #[arg(long, value_name = "NET", conflicts_with = "proxy")]
    behind_caller: Vec<InterfaceAddress>,
    /// A SOCKS5 proxy at the second machine instead of a tunnel: needs no root, carries TCP and UDP of programs that ask for it.
    #[arg(long)]
    proxy: bool,
    /// A network or host with its ports that the proxy may reach from the first machine; may be given several times. Without it: all but
    /// that machine itself.
    #[arg(long, value_name = "ADDR:PORTS", requires = "proxy")]
    allow: Vec<String>,
    /// Print NDJSON records.
    #[arg(long)]
    json: bool,
}

impl InitArgs {
    fn terms(&self) -> Result<Terms, Failure> {
        let [called, caller] = self.names.as_slice() else {
            return Err(wrong(anyhow!("--names: write two, such as {NAMES}")));
        };
        let networks = |behind: &[InterfaceAddress]| behind.iter().copied().map(Network).collect();
        let terms = Terms {
            called: called.clone(),
            caller: caller.clone(),
            carried: if self.proxy {
                Carried::Proxy {}
            } else {
                Carried::Tunnel {
                    network: Network(self.network),
                    behind_called: networks(&self.behind_called),
                    behind_caller: networks(&self.behind_caller),
                }
            },
        };
        terms.check("--names")?;
        Ok(terms)
    }

    /// Whether the terms are those that nobody asked for.
    fn has_usual_terms(&self) -> bool {
        self.names.join(",") == NAMES
            && self.network.to_string() == NETWORK
            && self.behind_called.is_empty()
            && self.behind_caller.is_empty()
            && !self.proxy
    }
}

const fn wrong(cause: anyhow::Error) -> Failure {
    Failure {
        exit: Exit::Usage,
        cause,
    }
}

fn entropy() -> Result<Entropy, Failure> {
    Entropy::from_system()
        .context("asking the kernel for random numbers")
        .or_exit(Exit::Device)
}

/// The address of the called end with its port.
fn called_address(typed: &str) -> Result<String, Failure> {
    let called = with_port(typed.trim(), PORT);
    called.parse::<Place>().map_err(|error| {
        wrong(anyhow!(
            "--called: {error}; write an address or a name, such as 203.0.113.10"
        ))
    })?;
    Ok(called)
}

/// Writes two gateways' files, or the file of one that is paired with the other.
///
/// # Errors
/// A name or a network cannot be; a file is there already, or cannot be written; there is no pair.
pub(crate) fn run(args: &InitArgs) -> Result<Exit, Failure> {
    if !args.pair {
        return write_both(args);
    }
    match &args.called {
        None => pair::listen(args),
        Some(called) => pair::call(args, &called_address(called)?),
    }
}

fn write_both(args: &InitArgs) -> Result<Exit, Failure> {
    let terms = args.terms()?;
    let called = match &args.called {
        Some(called) => called.clone(),
        None => ask(&terms).map_err(wrong)?,
    };
    let called = called_address(&called)?;
    let mut entropy = entropy()?;
    let file = |end, peer_address| GatewayFile {
        terms: &terms,
        end,
        allow: &args.allow,
        listen: None,
        peer_address,
    };
    let first = file(End::Called, None);
    let second = file(End::Caller, Some(called.as_str()));
    let keys = [(); 2].map(|()| SecretKey::generate(&mut entropy));
    let ends = [
        (&first, &keys[0], keys[1].public()),
        (&second, &keys[1], keys[0].public()),
    ];
    for (file, _, peer) in ends {
        // What a gateway would refuse is refused before anything is written.
        file.check(&args.place, peer)?;
    }
    let written = [
        ends[0].0.write(&args.place, ends[0].1, ends[0].2)?,
        ends[1].0.write(&args.place, ends[1].1, ends[1].2)?,
    ];
    let paths: Vec<PathBuf> = written
        .into_iter()
        .flat_map(files::WrittenFiles::keep)
        .collect();
    if args.json {
        output::record(&json!({"schema": SCHEMA, "kind": "written", "files": paths}))?;
    } else {
        for path in &paths {
            output::line(&path.display().to_string())?;
        }
        advise(args, [&first, &second], &called);
    }
    Ok(Exit::Done)
}

/// Asks for the address, where a person can answer.
fn ask(terms: &Terms) -> anyhow::Result<String> {
    let (first, second) = (&terms.called, &terms.caller);
    let missing = || {
        anyhow!(
            "--called is missing: the address at which `{second}` reaches `{first}`, such as 203.0.113.10"
        )
    };
    if !io::stdin().is_terminal() {
        return Err(missing());
    }
    eprint!("The address at which `{second}` reaches `{first}` (host, or host:port): ");
    io::stderr().flush()?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    if line.trim().is_empty() {
        return Err(missing());
    }
    Ok(line)
}

/// Says what comes next.
fn advise(args: &InitArgs, ends: [&GatewayFile<'_>; 2], called: &str) {
    let terms = ends[0].terms;
    eprintln!("fulmar: take each folder to its machine; whoever has a key file can be that end");
    for file in ends {
        let start = advice::start(terms, &file.folder(&args.place));
        eprintln!("  {:<16} {start}", terms.name(file.end));
    }
    let port = called.rsplit_once(':').map_or("", |(_, port)| port);
    eprintln!(
        "UDP port {port} must be open at {called}. Then, {}; {}",
        advice::proof(terms),
        advice::page()
    );
    for file in ends {
        for line in advice::needs(terms, file.end, &args.allow) {
            eprintln!("{line}");
        }
    }
}
