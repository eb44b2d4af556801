//! The words on each key: the one place that the guide's table and the manual page are made from.

use super::{KeyRow, KeyTable};

/// The tables of a configuration in the order in which a reader needs them.
pub const KEY_TABLES: &[KeyTable] = &[
    KeyTable {
        name: "[gateway]",
        rows: &[
            KeyRow {
                keys: &["name"],
                meaning: "name in logs, metrics and file names",
                default: "`gateway`",
            },
            KeyRow {
                keys: &["listen"],
                meaning: "UDP port towards the peers; `:PORT` is every address, IPv4 and IPv6",
                default: "`:4914`",
            },
            KeyRow {
                keys: &["state_dir"],
                meaning: r#"what must survive a restart; see "State""#,
                default: r#"see "State""#,
            },
            KeyRow {
                keys: &["log"],
                meaning: "`error`, `warn`, `info`, `debug` (a line for each flow)",
                default: "`info`",
            },
            KeyRow {
                keys: &["fec_words"],
                meaning: "parity words behind every datagram to every peer, for links that deliver damaged datagrams; both ends must have some, and handshakes are mended only if it is the same number",
                default: "0; to a peer whose `carrier` lets damage in as many as the link needs, and 12 behind handshakes",
            },
            KeyRow {
                keys: &["overhead"],
                meaning: r#"what repetitions of thin flows may cost beyond one for each loss, as a share of their octets that this gateway sends: see "Thin flows""#,
                default: "`40%`",
            },
        ],
    },
    KeyTable {
        name: "[security]",
        rows: &[
            KeyRow {
                keys: &["kind"],
                meaning: "`noise` (key pairs), `preset` (one key for both ends), `none` (lab)",
                default: "",
            },
            KeyRow {
                keys: &["private_key_file", "preset_key_file"],
                meaning: "made by `fulmar keygen`, mode 600",
                default: "",
            },
            KeyRow {
                keys: &["former_private_key_file"],
                meaning: r#"our previous key, by which peers may still call: see "Changing keys""#,
                default: "none",
            },
        ],
    },
    KeyTable {
        name: "[[peer]]",
        rows: &[
            KeyRow {
                keys: &["name"],
                meaning: "name that rules use, at most 64 octets",
                default: "",
            },
            KeyRow {
                keys: &["address"],
                meaning: "host and port; the gateway looks a name up until it has an address, and again every five minutes; without `address` the peer calls us",
                default: "",
            },
            KeyRow {
                keys: &["public_key"],
                meaning: r#"what `fulmar keygen` printed there, with `noise`; two of them, `["OLD", "NEW"]`, while the peer changes its key"#,
                default: "",
            },
            KeyRow {
                keys: &["carrier"],
                meaning: r#"how datagrams travel to it: `auto`, `udp`, `udp-nochecksum`, `udplite`, `ethernet:DEV`; see "Links that damage""#,
                default: "`udp`",
            },
            KeyRow {
                keys: &["rate"],
                meaning: "what the link towards it carries, IP headers included, if it is known: an upper bound. Without it the rate is found",
                default: "found",
            },
            KeyRow {
                keys: &["share"],
                meaning: r#"whose the link is: `own`, `fair` (others in the same queue get their share), `background` (others come first); see "The rate""#,
                default: "`fair`; `own` with `rate`",
            },
            KeyRow {
                keys: &["mtu"],
                meaning: "the largest IP packet to try, 1280B to 9216B; the gateway finds out what the path carries up to that",
                default: "1500B",
            },
            KeyRow {
                keys: &["mtu_discovery"],
                meaning: "`false`: take `mtu` for granted on every path and do not try; if that is wrong, full packets are lost and nobody says so",
                default: "`true`",
            },
            KeyRow {
                keys: &["via"],
                meaning: "the peer that carries on what is for this one, which has no session with this gateway; beside it stands `name` alone; see [gateways in a row](chains.md)",
                default: "it has a session of its own",
            },
            KeyRow {
                keys: &["rendezvous"],
                meaning: r#"the peer that introduces this one to us, instead of `address`: see "Both ends behind NAT""#,
                default: "none",
            },
            KeyRow {
                keys: &["introduce"],
                meaning: "our help for this peer to meet others that have it, too, if both ask: `address` (each is told where the other calls from), `relay` (also, their sealed datagrams are carried on)",
                default: "none",
            },
            KeyRow {
                keys: &["relay_rate"],
                meaning: "what this peer may send to others through us, and what all of them may send to it, with `introduce = \"relay\"`",
                default: "20mbit",
            },
        ],
    },
    KeyTable {
        name: "[[peer.path]]",
        rows: &[
            KeyRow {
                keys: &["local"],
                meaning: r#"a further path to the peer: the address here from which it starts; see "Several paths""#,
                default: "any",
            },
            KeyRow {
                keys: &["device"],
                meaning: "the device by which it leaves, whatever the routes say",
                default: "by the routes",
            },
            KeyRow {
                keys: &["address"],
                meaning: "the peer's address on it",
                default: "that of the peer",
            },
            KeyRow {
                keys: &["rate"],
                meaning: "what it carries, IP headers included, if it is known",
                default: "found",
            },
            KeyRow {
                keys: &["cost"],
                meaning: "0 to 255: it carries data while no path that costs less is up; the peer's own `address` costs 0",
                default: "0",
            },
        ],
    },
    KeyTable {
        name: "[[link]]",
        rows: &[
            KeyRow {
                keys: &["name"],
                meaning: "a link that tells of itself; see [links that tell of themselves](links.md)",
                default: "",
            },
            KeyRow {
                keys: &["peer", "path"],
                meaning: "the path to the peer that it is below: 0 is the peer's `address`, n the n-th of its `[[peer.path]]`",
                default: "the only peer, 0",
            },
            KeyRow {
                keys: &["socket", "schedule", "dlep", "device"],
                meaning: "who tells: a Unix socket to which lines are written, a file of spans, the device of a modem that speaks DLEP, or the kernel of a Wi-Fi or Ethernet device; one of them",
                default: "",
            },
            KeyRow {
                keys: &["destination"],
                meaning: "with `dlep`: the address of the peer's modem",
                default: "the only destination that is up",
            },
            KeyRow {
                keys: &["station"],
                meaning: "with `device`: the address of the peer's Wi-Fi station",
                default: "the only station",
            },
            KeyRow {
                keys: &["valid_for"],
                meaning: "how long a message holds that does not say so, 1s or more",
                default: "30s",
            },
        ],
    },
    KeyTable {
        name: "[class.NAME]",
        rows: &[
            KeyRow {
                keys: &["mode"],
                meaning: r#"what the class promises: see "What a mode promises here"; `auto` carries flows as `nack-mack` does, and repairs them as the class's goal asks"#,
                default: "`auto`",
            },
            KeyRow {
                keys: &["priority"],
                meaning: "0 to 63, strict, higher first",
                default: "0",
            },
            KeyRow {
                keys: &["weight"],
                meaning: "1 to 255: the share among classes of one priority",
                default: "1",
            },
            KeyRow {
                keys: &["deadline"],
                meaning: "messages older than this are dropped, and counted (UDP; streams deliver everything). In a mode that delivers everything, what was sent is repeated until it has arrived, and dropped there if it is late",
                default: "none",
            },
            KeyRow {
                keys: &["deliver"],
                meaning: "with `auto` and a deadline: `all`, or `by deadline`: UDP messages come in any order, are sent again while there is time, not at all when there is none, and late ones are dropped. Of streams all is delivered, and the deadline is a target",
                default: "`by deadline`",
            },
            KeyRow {
                keys: &["residual"],
                meaning: "with `auto` and a deadline: the share of messages of a thin flow that may miss it",
                default: "1%; of UDP by deadline 0.07%",
            },
            KeyRow {
                keys: &["overhead"],
                meaning: "octets of copies and repair symbols, beside one repetition for each loss, as a share of the data, 0% to 100%",
                default: "that of `[gateway]`; without it 90% with a deadline, 40% without",
            },
            KeyRow {
                keys: &["fec_block", "fec_block_close"],
                meaning: "`20+4`: 4 repair symbols for every 20 TPDUs, in `quasi-reliable`",
                default: "none, 20ms",
            },
            KeyRow {
                keys: &["window"],
                meaning: "octets ahead of the destination; from 4MiB on up to twelve times as many, where the link's rate and five round trips take so many; of UDP, octets of messages that wait",
                default: "4MiB",
            },
            KeyRow {
                keys: &["custody", "keep"],
                meaning: "where `near-reliable` keeps octets: `disk`, `memory` or `none`; how much of one flow",
                default: "`memory`, 16MiB",
            },
        ],
    },
    KeyTable {
        name: "[[forward]]",
        rows: &[
            KeyRow {
                keys: &["protocol"],
                meaning: "`tcp` or `udp`",
                default: "`tcp`",
            },
            KeyRow {
                keys: &["listen", "to"],
                meaning: "the port here, and the destination that it stands for; the far gateway resolves `to` and connects to it",
                default: "",
            },
        ],
    },
    KeyTable {
        name: "[[socks]]",
        rows: &[
            KeyRow {
                keys: &["listen"],
                meaning: "SOCKS5: CONNECT and UDP ASSOCIATE",
                default: "",
            },
            KeyRow {
                keys: &["user", "password_file"],
                meaning: "who may use it; the file as for keys: its owner's or root's, mode 600 or 640",
                default: "everybody who reaches it; a warning says so unless `listen` is the loopback",
            },
            KeyRow {
                keys: &["udp_class"],
                meaning: "class of UDP associations",
                default: "as `class`",
            },
        ],
    },
    KeyTable {
        name: "[[transparent]]",
        rows: &[
            KeyRow {
                keys: &["protocol", "listen"],
                meaning: "the port to which the kernel diverts traffic (TPROXY)",
                default: "`tcp`, -",
            },
            KeyRow {
                keys: &["only_dscp"],
                meaning: "code points to divert",
                default: "all",
            },
        ],
    },
    KeyTable {
        name: "[[forward]], [[socks]], [[transparent]]",
        rows: &[
            KeyRow {
                keys: &["peer"],
                meaning: "the peer to which the traffic goes; may be left out if there is one peer",
                default: "",
            },
            KeyRow {
                keys: &["class", "class_by_port", "class_by_dscp"],
                meaning: "by code point first, then by destination port, else `class`",
                default: "`default`",
            },
        ],
    },
    KeyTable {
        name: "[[tunnel]]",
        rows: &[
            KeyRow {
                keys: &["name", "peer"],
                meaning: "the peer's tunnel of the same name: any IP packet of one comes out of the other ([the guide](tunnel.md))",
                default: "`tunnel`, the only peer",
            },
            KeyRow {
                keys: &["device", "address"],
                meaning: r#"the device here, and its addresses with their networks: `"10.77.0.1/24"`, or a list"#,
                default: "`tunnel0`, -",
            },
            KeyRow {
                keys: &["routes"],
                meaning: r#"networks behind the peer, such as `"10.79.0.0/16"`: they are routed into the device, and the peer may speak for their hosts"#,
                default: "none",
            },
            KeyRow {
                keys: &["mtu"],
                meaning: "the largest packet inside, 1280B to 9216B",
                default: "1500B",
            },
            KeyRow {
                keys: &["class", "class_by_port", "class_by_dscp"],
                meaning: "by code point first, then by port, which is either end's, else `class`",
                default: "`default`",
            },
            KeyRow {
                keys: &["accelerate"],
                meaning: "TCP connections that would enter the device are split here and go on from the peer, where its `[egress]` allows ([the guide](tunnel.md#faster-tcp-without-its-acknowledgements))",
                default: "`false`",
            },
        ],
    },
    KeyTable {
        name: "[egress]",
        rows: &[
            KeyRow {
                keys: &["allow"],
                meaning: "what peers' clients may reach from here: `10.0.0.0/8:1-65535`, `[fd00::/8]:443`, `host.example:80`, `*.example:443`",
                default: "nothing",
            },
            KeyRow {
                keys: &["relay"],
                meaning: "the peers to which flows of other peers are carried on; see [gateways in a row](chains.md)",
                default: "nobody",
            },
            KeyRow {
                keys: &["connect_timeout"],
                meaning: "how long a destination is waited for, until its client is told that it does not answer",
                default: "10s",
            },
        ],
    },
    KeyTable {
        name: "[custody]",
        rows: &[
            KeyRow {
                keys: &["limit"],
                meaning: "octets of all flows together; half of it is reserved for the peers in equal parts",
                default: "256MiB",
            },
            KeyRow {
                keys: &["directory"],
                meaning: "directory of the store on disk; made if it does not exist; holds nothing else",
                default: "",
            },
            KeyRow {
                keys: &["fsync"],
                meaning: r#"`always`, `never`, or a time such as `50ms`: see "Custody on disk""#,
                default: "50ms",
            },
            KeyRow {
                keys: &["keep_connections"],
                meaning: "how long TCP connections stay open after the gateway was killed, or `none`",
                default: "1min",
            },
        ],
    },
    KeyTable {
        name: "[limits]",
        rows: &[
            KeyRow {
                keys: &["flows", "memory"],
                meaning: r#"most flows at once, most memory for what is received, and a quarter as much for messages and packets that wait to be sent; a SOCKS client that negotiates, and a UDP association beside its destinations, each count as a flow. Shared: see "Who gets how many flows""#,
                default: "4096, 512MiB",
            },
            KeyRow {
                keys: &["flows_per_client"],
                meaning: "most flows of one client address (IPv6: /64) towards one peer; sharing may allow it fewer",
                default: "what sharing allows",
            },
            KeyRow {
                keys: &["tcp_idle", "udp_idle"],
                meaning: "flows that carry nothing are ended",
                default: "24h, 2min",
            },
            KeyRow {
                keys: &["tcp_silent"],
                meaning: "a TCP client that has said nothing for so long is reset, counted from the last octet that came for it (event `client_silent`); raise it for feeds with rarer news",
                default: "5min",
            },
            KeyRow {
                keys: &["outage"],
                meaning: "how long flows outlive a link that is down",
                default: "4h",
            },
        ],
    },
    KeyTable {
        name: "[metrics]",
        rows: &[KeyRow {
            keys: &["listen"],
            meaning: "the live page, `/status` (JSON) and `/metrics` (OpenMetrics): [watching a gateway](operating.md#watch-it)",
            default: "off",
        }],
    },
    KeyTable {
        name: "[capture]",
        rows: &[
            KeyRow {
                keys: &["file"],
                meaning: "sealed and opened datagrams for Wireshark, readable by the gateway's user alone: it **contains user data in clear** ([captures](captures.md)); `--capture FILE` does the same",
                default: "off",
            },
            KeyRow {
                keys: &["max_size"],
                meaning: "the capture ends before it gets larger; the traffic goes on",
                default: "1GB",
            },
        ],
    },
    KeyTable {
        name: "[trace]",
        rows: &[
            KeyRow {
                keys: &["file"],
                meaning: "events of flows, connections, the session and the link, one JSON object a line, readable by the gateway's user alone ([event traces](captures.md#event-traces)); `--trace FILE` does the same",
                default: "off",
            },
            KeyRow {
                keys: &["max_size"],
                meaning: "the trace ends before it gets larger; the traffic goes on",
                default: "1GB",
            },
        ],
    },
];
