//! Things that the AeroTP papers describe and that their pages do not show.

use crate::paper::Absent;

const MODES: &str = "multi-mode paper, section III.D";

const PASSTHROUGH: Absent = Absent {
    place: "section III.D; hybrid paper, section I",
    what: "TCP's acknowledgements passed through in the reliable mode",
    instead: "No run of this page has it. A tunnel between gateways (`fulmar up`) carries TCP packet by packet, so its acknowledgements come from \
        the destination. A gateway that accepts connections ends TCP at each side: it takes at most a window of octets that the destination \
        has not acknowledged, and passes on the end of a stream only when it has acknowledged all.",
};

const AERONP: Absent = Absent {
    place: "sections I, III.A and III.B; Table I",
    what: "AeroNP: its header, its translation from IP, and its signals of congestion and of the channel's state",
    instead: "Packets are IP's. The rate is a setting, lowered by marks (ECN) and by what the link is found to carry. Its signals have their \
        place outside of packets: a link tells rate, queue, wrong bits and outages to the machines beside it (`[[link]]`, docs/guide/links.md), \
        and an optical hop its received power.",
};

const AERORP: Absent = Absent {
    place: "sections I and IV",
    what: "AeroRP, and any routing",
    instead: "Topologies are chains of hops that do not change.",
};

const MULTIPATH: Absent = Absent {
    place: "Table I, section III.D",
    what: "Several paths to a connection, and erasure codes across them",
    instead: "Gateways have both, and docs/measurements/several-paths.md has their figures. This page's runs have one path.",
};

const CHAINS: Absent = Absent {
    place: "Table I",
    what: "Partial-path support, in this page's runs",
    instead: "Gateways in a row have it: each keeps what it took until the next one has it, while a later hop is down (`via`, \
        docs/guide/chains.md), and tests kill them in mid-transfer. This page's runs have one session.",
};

const LOST_VALUES: Absent = Absent {
    place: "all figures",
    what: "The values of the paper's curves",
    instead: "They are lost with the pictures; what the text says of them is judged. Points of ns-3 stand beside ours where we ran it.",
};

/// The things that are absent from the multi-mode paper's page.
pub(super) const MULTI_MODE: &[Absent] = &[
    PASSTHROUGH,
    MULTIPATH,
    CHAINS,
    AERONP,
    AERORP,
    Absent {
        place: "section III.B",
        what: "Translation of single TCP segments and UDP datagrams into TPDUs and back",
        instead: "A tunnel carries whole packets, with TCP's flags and options inside. The other ways through a gateway carry streams and \
            messages, cut anew into TPDUs.",
    },
    Absent {
        place: MODES,
        what: "A link layer whose code the unreliable mode varies by cross-layering",
        instead: "Our link layers with parity follow the loss by themselves, and know of no mode above.",
    },
    LOST_VALUES,
];

/// The things that are absent from the hybrid paper's page.
pub(crate) const HYBRID: &[Absent] = &[
    PASSTHROUGH,
    AERONP,
    AERORP,
    Absent {
        place: "section II.B",
        what: "Type-II hybrid ARQ: parity alone sent again, combined with what came before",
        instead: "The paper describes it and runs type I, as this page does: the whole TPDU is sent again. Gateways send parity again \
            (docs/adr/0033-damaged-datagrams-count.md).",
    },
    Absent {
        place: "section III",
        what: "The paper's code and its number of parity words",
        instead: "It names neither; ours is an interleaved Reed-Solomon code, with 4 words where nothing else is said.",
    },
    LOST_VALUES,
];
