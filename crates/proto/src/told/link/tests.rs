use super::*;
use crate::units::Bitrate;

fn at(millis: u64) -> Instant {
    Instant::START + Duration::from_millis(millis)
}

fn up(mbit: u64) -> LinkNews {
    LinkNews {
        is_up: Some(true),
        rate_out: Some(Bitrate::from_bits_per_second(mbit * 1_000_000)),
        ..LinkNews::default()
    }
}

fn down() -> LinkNews {
    LinkNews {
        is_up: Some(false),
        ..LinkNews::default()
    }
}

const QUIET: LinkEvidence = LinkEvidence {
    last_heard: None,
    silent_since: None,
    carries_less: false,
};

#[test]
fn news_is_whole_and_ages() {
    let mut link = ToldLink::default();
    assert_eq!(
        (link.facts(at(0)), link.next_at(at(0))),
        (ToldFacts::default(), None)
    );
    link.take(at(0), up(2), Duration::from_secs(5));
    assert_eq!(link.facts(at(4_999)).rate, up(2).rate_out);
    link.take(at(1_000), down(), Duration::from_secs(5));
    let facts = link.facts(at(1_000));
    assert_eq!(
        (facts.is_up, facts.rate),
        (Some(false), None),
        "what is not named is not known"
    );
    assert!(link.facts(at(6_000)).is_empty());
    assert_eq!(link.next_at(at(6_000)), None, "nothing is left to do");
    link.forget();
    assert!(link.news(at(1_000)).is_none());
}

#[test]
fn a_planned_outage_begins_and_ends_by_itself_however_old_the_word_is() {
    let mut link = ToldLink::default();
    let outage = PlannedOutage {
        begins: at(10_000),
        lasts: Duration::from_secs(60),
    };
    let news = LinkNews {
        outage: Some(outage),
        ..up(2)
    };
    link.take(at(0), news, Duration::from_secs(5));
    let _ = link.look(at(9_999), &QUIET);
    assert_eq!(link.next_at(at(9_999)), Some(at(10_000)));
    assert_eq!(link.facts(at(9_999)).is_up, None, "the rest is too old");
    assert_eq!(link.facts(at(10_000)).is_up, Some(false));
    assert_eq!(link.facts(at(69_999)).is_up, Some(false));
    assert!(link.facts(at(70_000)).is_empty());
    link.take(at(0), news, Duration::from_secs(600));
    assert_eq!(link.facts(at(69_999)).is_up, Some(false));
    assert_eq!(link.facts(at(70_000)).is_up, Some(true));
    let over = LinkNews {
        outage: Some(outage),
        ..down()
    };
    link.take(at(80_000), over, Duration::from_secs(600));
    assert_eq!(
        link.facts(at(80_001)).is_up,
        Some(false),
        "it was said after the outage"
    );
}

#[test]
fn data_while_down_and_silence_while_up_are_noticed_and_believed_again_later() {
    let mut link = ToldLink::default();
    link.take(at(0), down(), VALID_FOR * 100);
    let heard = |millis| LinkEvidence {
        last_heard: Some(at(millis)),
        ..QUIET
    };
    assert_eq!(
        link.look(at(2_000), &heard(1_900)),
        None,
        "it was under way"
    );
    assert_eq!(
        link.look(at(3_000), &heard(2_900)),
        Some(ToldFault::DataWhileDown)
    );
    assert!(link.facts(at(3_000)).is_empty());
    assert_eq!(link.look(at(4_000), &heard(3_900)), None, "it is said once");
    assert_eq!(
        link.next_at(at(4_000)),
        Some(at(33_000)),
        "no looks meanwhile"
    );
    assert_eq!(link.facts(at(33_000)).is_up, Some(false));
    assert_eq!(
        link.look(at(36_000), &heard(34_900)),
        None,
        "data that came while it was not believed convict it of nothing again"
    );
    // The second time, for twice as long.
    assert_eq!(
        link.look(at(36_000), &heard(35_100)),
        Some(ToldFault::DataWhileDown)
    );
    assert_eq!(
        (link.next_at(at(36_000)), link.faults()),
        (Some(at(96_000)), 2)
    );

    let mut link = ToldLink::default();
    link.take(at(0), up(2), VALID_FOR * 100);
    let silent = LinkEvidence {
        silent_since: Some(at(1_000)),
        ..QUIET
    };
    assert_eq!(link.look(at(5_999), &silent), None);
    assert_eq!(
        link.look(at(6_000), &silent),
        Some(ToldFault::SilentWhileUp)
    );
}

#[test]
fn a_rate_that_is_not_delivered_is_noticed_only_where_one_is_told() {
    let less = LinkEvidence {
        carries_less: true,
        ..QUIET
    };
    let mut link = ToldLink::default();
    let no_rate = LinkNews {
        rate_out: None,
        ..up(2)
    };
    link.take(at(0), no_rate, VALID_FOR);
    assert_eq!(link.look(at(1), &less), None);
    link.take(at(1), up(2), VALID_FOR);
    assert_eq!(link.look(at(2), &less), Some(ToldFault::LessDelivered));
}

#[test]
fn each_deadline_lies_ahead_once_it_was_served() {
    // A driver that serves deadlines and nothing else: it is never asked for one that is over.
    let mut link = ToldLink::default();
    let outage = PlannedOutage {
        begins: at(20_000),
        lasts: Duration::from_secs(2),
    };
    let news = LinkNews {
        outage: Some(outage),
        ..up(2)
    };
    link.take(at(0), news, VALID_FOR);
    let mut now = at(0);
    let mut turns = 0;
    while let Some(next) = link.next_at(now) {
        assert!(next >= now);
        now = next;
        let _ = link.look(now, &QUIET);
        assert!(
            link.next_at(now).is_none_or(|next| next > now),
            "it would spin"
        );
        turns += 1;
    }
    assert!((30..=36).contains(&turns), "one look a second: {turns}");
}
