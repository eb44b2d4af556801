//! Fading: the contents of 100 s of each of the four demonstrations.

use fulmar_channel::fading::{Demonstration, Fade, Fading};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Duration, Instant, OpticalPower};

/// The figures of 100 s of a demonstration.
#[derive(Default)]
struct Course {
    mean_in_light: f64,
    dark_spans: u32,
    dark_share: f64,
    /// Spans with a bit error rate above 1e-4.
    fades: u32,
    fade_mean: f64,
    fade_longest: f64,
    /// Share of the bit errors in the first and in the last 20 s.
    early: f64,
    late: f64,
}

fn course(preset: Demonstration, seed: u64) -> Course {
    let fading = Fading::new(preset.model()).unwrap();
    let fades: Vec<_> = fading
        .fades(&Rng::from_seed(seed))
        .unwrap()
        .take_while(|fade| fade.at < Instant::START + Duration::from_secs(100))
        .collect();
    let step = 100.0 / fades.len() as f64;
    let is_dark = |fade: &Fade| fade.power == OpticalPower::ZERO;
    let lit = fades.iter().filter(|fade| !is_dark(fade));
    let errors: f64 = lit.clone().map(|fade| fade.bit_errors.value()).sum();
    let within = |from: u64, to: u64| {
        let span = (from as f64)..(to as f64);
        let inside = lit
            .clone()
            .filter(|fade| span.contains(&fade.at.as_secs_f64()));
        inside.map(|fade| fade.bit_errors.value()).sum::<f64>() / errors
    };
    let kind = |fade: &Fade| (is_dark(fade), fade.bit_errors.value() > 1e-4);
    let mut course = Course {
        mean_in_light: errors / lit.clone().count() as f64,
        dark_share: 1.0 - lit.clone().count() as f64 / fades.len() as f64,
        early: within(0, 20),
        late: within(80, 100),
        ..Course::default()
    };
    for span in fades.chunk_by(|a, b| kind(a) == kind(b)) {
        match kind(&span[0]) {
            (true, _) => course.dark_spans += 1,
            (false, true) => {
                let length = span.len() as f64 * step;
                course.fades += 1;
                course.fade_mean += length;
                course.fade_longest = course.fade_longest.max(length);
            }
            (false, false) => {}
        }
    }
    course.fade_mean /= f64::from(course.fades.max(1));
    course
}

#[test]
fn the_demonstrations_are_what_is_said_of_them_in_words() {
    let courses = |preset: Demonstration| -> Vec<Course> {
        let courses: Vec<Course> = (0..4).map(|seed| course(preset, seed)).collect();
        for (seed, c) in courses.iter().enumerate() {
            println!(
                "{} {seed}: ber {:.4e}, dark {} times {:.2} %, {} fades of {:.2} ms, longest {:.2} ms, \
                 errors {:.1} % in the first 20 s, {:.1} % in the last",
                preset.name(),
                c.mean_in_light,
                c.dark_spans,
                100.0 * c.dark_share,
                c.fades,
                1e3 * c.fade_mean,
                1e3 * c.fade_longest,
                100.0 * c.early,
                100.0 * c.late,
            );
        }
        courses
    };
    let [fasolt, kiodo, atenaa, testbed] = Demonstration::ALL.map(courses);
    // The fading was scaled over these 100 s; errors during an obstruction are missing.
    for c in fasolt.iter().chain(&kiodo).chain(&testbed) {
        assert!(
            (c.mean_in_light / 1e-6 - 1.0).abs() < 1e-2,
            "{}",
            c.mean_in_light
        );
    }
    for c in &kiodo {
        // 30, 60 and 90 s, 50 ms each; errors fall as the satellite comes nearer.
        assert_eq!((c.dark_spans, (c.dark_share * 1e5).round()), (3, 150.0));
        assert!(c.early > 0.5 && c.late < 0.01, "{} {}", c.early, c.late);
    }
    // 100 s of cycles of 2.275 s in the mean, 12 % of them dark.
    for c in &atenaa {
        assert!((35..=53).contains(&c.dark_spans), "{}", c.dark_spans);
        assert!((0.08..0.16).contains(&c.dark_share), "{}", c.dark_share);
    }
    let mean = |courses: &[Course]| courses.iter().map(|c| c.fade_mean).sum::<f64>() / 4.0;
    assert!(mean(&fasolt) > 3.0 * mean(&testbed), "fasolt's are long");
}
