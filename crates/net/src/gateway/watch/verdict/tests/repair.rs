//! Losses for good, damage, and several paths.

use super::*;

#[test]
fn what_is_lost_for_good_and_a_link_that_is_poor_itself_are_told() {
    let given_up = lossy().with(|it| it.window.far_residual_share = Some(0.02));
    check(
        "given up there",
        &given_up,
        (
            "lost_for_good",
            POOR,
            "Loses 20.1 % there, 19.8 % here, mostly one by one; delivers 7.55 of the 7.84 Mbit/s that such a link allows (96 %): 2.00 % of \
         the packets are lost for good there; nothing, if the class may lose; else another mode or more `overhead`.",
        ),
    );
    let here = lossy().with(|it| it.window.residual_share = Some(0.05));
    assert_eq!(here.judged().peers[0].verdict.state, "lost_for_good");
    let of_few = lossy().with(|it| {
        it.window.residual_share = Some(0.33);
        it.window.inward.sent = 19;
    });
    assert_ne!(of_few.judged().peers[0].verdict.state, "lost_for_good");
    let hardly = lossy().with(|it| it.window.residual_share = Some(0.000_9));
    assert_eq!(hardly.judged().peers[0].verdict.state, "lossy");
    let heavy = lossy().with(|it| {
        it.window.outward = loss(0.45);
        it.window.confirmed_rate = 5.2 * MBIT;
    });
    check(
        "heavy",
        &heavy,
        (
            "loss_high",
            POOR,
            "Loses 45.0 % there, 19.8 % here, mostly one by one; delivers 5.20 of the 5.40 Mbit/s that such a link allows (96 %): the link \
         itself is poor; look at the losses by cause, then at the link.",
        ),
    );
}

#[test]
fn damage_that_is_mended_is_fine_and_damage_beyond_repair_is_not() {
    let damaged = |residual: f64| {
        busy().with(|it| {
            let way = DamagedDirection {
                residual_ratio: Some(residual),
                ..DamagedDirection::default()
            };
            it.peer.carrier = "udp-nochecksum".to_owned();
            it.peer.damage = Some(DamageFigures {
                words: 6,
                outward: way,
                inward: DamagedDirection::default(),
            });
        })
    };
    check(
        "mended",
        &damaged(0.01),
        (
            "unchecked",
            GOOD,
            "Loses nothing; delivers 9.62 of the 9.81 Mbit/s that such a link allows (98 %). Fine.",
        ),
    );
    check(
        "beyond repair",
        &damaged(0.2),
        (
            "beyond_repair",
            POOR,
            "Loses nothing; delivers 9.62 of the 9.81 Mbit/s that such a link allows (98 %): 20.00 % of what arrives is damaged beyond \
         repair; wait until parity has followed; else a better link: antenna, power, interference.",
        ),
    );
}

#[test]
fn of_several_paths_those_that_carry_are_summed_and_one_that_is_down_is_told() {
    let two = busy().with(|it| {
        it.peer.paths = vec![path(0, "up", 6), path(1, "up", 4)];
        it.peer.rate_bits_per_second = None;
    });
    check(
        "two paths",
        &two,
        (
            "good",
            GOOD,
            "Loses nothing; delivers 9.62 of the 9.81 Mbit/s that such a link allows (98 %). Fine.",
        ),
    );
    let stands_by = two.clone().with(|it| {
        it.peer.paths[1].cost = 1;
        it.window.wire_rate = 5.9 * MBIT;
        it.window.confirmed_rate = 5.7 * MBIT;
    });
    check(
        "one stands by",
        &stands_by,
        (
            "good",
            GOOD,
            "Loses nothing; delivers 5.70 of the 5.89 Mbit/s that such a link allows (97 %). Fine.",
        ),
    );
    let one_down = two.clone().with(|it| {
        it.peer.paths[1] = PathFigures {
            down_seconds: Some(30.0),
            way: Some("by usb0 to 10.76.0.2:4914".to_owned()),
            ..path(1, "down", 4)
        };
        it.window.wire_rate = 5.9 * MBIT;
        it.window.confirmed_rate = 5.7 * MBIT;
    });
    check(
        "one is down",
        &one_down,
        (
            "path_down",
            POOR,
            "Loses nothing; delivers 5.70 of the 5.89 Mbit/s that such a link allows (97 %): path 1 (by usb0 to 10.76.0.2:4914) is down for \
         30.00 s; look at the device of this path.",
        ),
    );
    let waits = two.with(|it| {
        let waiting = WaitingPath {
            path: "usb0".to_owned(),
            why: "there is no such device".to_owned(),
        };
        it.peer.waiting_paths = vec![waiting];
    });
    check(
        "one waits",
        &waits,
        (
            "path_waits",
            POOR,
            "Loses nothing; delivers 9.62 of the 9.81 Mbit/s that such a link allows (98 %): the path usb0 waits: there is no such device; \
         plug it in, or take the path out of the file.",
        ),
    );
}
