//! Any octets as the sealed content of a datagram: frames are bounded in number, lists in length, and a TPDU that reads is
//! written again with the same fields and numbers, in the same octets but for lists that were longer than need be.

use fulmar_proto::wire::aerotp::short::{
    Content, Ends, FRAMES_MAX, Frame, FrameKind, Known, Named, RANGE_NUMBERS_MAX, ShortFeedback,
    read, write_full, write_named, write_repair, write_unknown_name, write_window,
};
use fulmar_proto::wire::aerotp::{
    Acks, CumulativeWords, Handshake, Mack, Nack, Tpdu, TpduKind, parse,
};
use fulmar_proto::wire::{Mode, Port, TpduSeq};

/// Numbers that both ends may have reached.
const BASES: [u32; 5] = [0, 1_000, 0x0080_0000, 0x7FFF_FF00, u32::MAX];

/// Numbers lie less than this behind the base of their list.
const SPAN: u32 = 1 << 23;

/// A peer with a connection of almost every name.
struct Almost(TpduSeq);

impl Known for Almost {
    fn ends(&self, named: Named) -> Option<Ends> {
        let name = named.name;
        let listener = Port(7_072 + name.listener_low());
        let (remote, local) = if named.sender_opened {
            (name.opener(), listener)
        } else {
            (listener, name.opener())
        };
        (name.0 % 11 != 7).then_some(Ends {
            local,
            remote,
            mode: Mode::ALL[usize::from(name.0 % 7)],
            next_expected: self.0,
            first_unsettled: self.0,
        })
    }

    fn next_expected(&self, _: Port, _: Port) -> TpduSeq {
        self.0
    }
}

/// # Panics
/// A law is broken.
pub(crate) fn holds(octets: &[u8]) {
    let mut frames = 0;
    let mut is_over = false;
    for frame in Content::of(octets) {
        assert!(!is_over, "a frame behind an error");
        let Ok(frame) = frame else {
            is_over = true;
            continue;
        };
        frames += 1;
        assert!(frame.fields().len() < octets.len());
        for base in BASES {
            frame_holds(&frame, &Almost(TpduSeq(base)));
        }
    }
    assert!(frames <= FRAMES_MAX);
}

fn frame_holds(frame: &Frame<'_>, known: &Almost) {
    let Ok(tpdu) = read(frame, known) else {
        return;
    };
    let received = [&[frame.code()], frame.fields()].concat();
    let mut again = Vec::new();
    match (frame.kind().expect("it reads"), frame.named()) {
        (FrameKind::Long, None) => {
            assert_eq!(parse(frame.fields()).expect("it reads").header, tpdu.header);
            return;
        }
        (FrameKind::Full, None) => write_full(&tpdu.header, &mut again),
        (FrameKind::Data, Some(named)) => write_named(named, &tpdu.header, &mut again),
        (FrameKind::Repair, Some(named)) => {
            let block = tpdu.block.expect("a repair TPDU has a block");
            write_repair(named, &tpdu.header, block, &mut again);
        }
        (FrameKind::Window, Some(named)) => {
            let window = tpdu.window.expect("a repair symbol over a window has one");
            write_window(named, tpdu.header.seq, window, &mut again);
        }
        (FrameKind::UnknownName, Some(named)) => {
            assert_eq!(tpdu.kind(), TpduKind::Reset);
            write_unknown_name(named.answered(), &mut again);
        }
        (FrameKind::Mack, Some(named)) => return mack_holds(&tpdu, named, &received, known),
        (FrameKind::Nack, Some(named)) => return nack_holds(&tpdu, named, &received, known),
        other => panic!("{other:?} reads as a TPDU"),
    }
    again.extend_from_slice(tpdu.body);
    assert_eq!(again, received);
}

fn feedback(tpdu: &Tpdu<'_>, named: Named) -> ShortFeedback {
    ShortFeedback {
        named,
        ecn: tpdu.header.ecn,
        echo: tpdu.header.timestamp,
        frame_bytes_max: usize::MAX,
    }
}

/// The numbers of a list, which lie in order behind its base.
fn numbers(list: impl ExactSizeIterator<Item = TpduSeq>, base: TpduSeq) -> Vec<TpduSeq> {
    let len = list.len();
    assert!(len <= RANGE_NUMBERS_MAX);
    let numbers: Vec<_> = list.collect();
    assert_eq!(numbers.len(), len);
    assert!(numbers.iter().all(|number| number.offset_from(base) < SPAN));
    numbers
}

fn mack_holds(tpdu: &Tpdu<'_>, named: Named, received: &[u8], known: &Almost) {
    let mack = Mack::of(tpdu).expect("a MACK reads");
    let Acks::Cumulative {
        next_expected,
        receiver,
        channel,
        report,
        above,
    } = mack.acks
    else {
        panic!("the short form has no lists");
    };
    let handshake = match (mack.asyn, mack.afin) {
        (false, false) => Handshake::None,
        (true, false) => Handshake::Asyn,
        (false, true) => Handshake::Afin,
        (true, true) => panic!("two handshakes"),
    };
    let words = CumulativeWords {
        receiver,
        channel,
        report,
    };
    let numbers = numbers(above, next_expected);
    assert!(numbers.is_sorted_by(|a, b| b.before(*a)));
    let mut again = Vec::new();
    let told = feedback(tpdu, named).cumulative(
        handshake,
        next_expected,
        words,
        numbers.iter().copied(),
        &mut again,
    );
    assert_eq!(told, numbers.len());
    reads_the_same(tpdu, &again, received, known, told);
}

fn nack_holds(tpdu: &Tpdu<'_>, named: Named, received: &[u8], known: &Almost) {
    let nack = Nack::of(tpdu).expect("a NACK reads");
    let wanted: Vec<_> = nack.wanted().collect();
    let first = tpdu.header.seq;
    let all = numbers(wanted.iter().copied(), first);
    assert_eq!(all.first(), Some(&first));
    assert!(all.is_sorted_by(|a, b| a.before(*b)));
    let mut again = Vec::new();
    let further = all[1..].iter().copied();
    let told = feedback(tpdu, named).nack(nack.cause, first, further, &mut again);
    assert_eq!(told + 1, all.len());
    reads_the_same(tpdu, &again, received, known, all.len());
}

/// Feedback that was written again has the same numbers, in no more octets.
fn reads_the_same(tpdu: &Tpdu<'_>, again: &[u8], received: &[u8], known: &Almost, numbers: usize) {
    let frame = Content::of(again).next().expect("a frame");
    let read_again = read(&frame.expect("it was just written"), known);
    let read_again = read_again.expect("it was just written");
    assert_eq!(
        (read_again.header, read_again.kind()),
        (tpdu.header, tpdu.kind())
    );
    assert!(again.len() <= received.len());
    let lists = |tpdu: &Tpdu<'_>| match (Mack::of(tpdu), Nack::of(tpdu)) {
        (Ok(mack), Err(_)) => match mack.acks {
            Acks::Cumulative { above, .. } => above.collect::<Vec<_>>(),
            Acks::Listed { .. } => panic!("the short form has no lists"),
        },
        (Err(_), Ok(nack)) => nack.wanted().collect(),
        _ => panic!("neither a MACK nor a NACK"),
    };
    assert_eq!(lists(&read_again), lists(tpdu));
    assert_eq!(lists(tpdu).len(), numbers);
}
