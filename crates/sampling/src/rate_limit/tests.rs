use super::*;

const SECOND: u64 = 1_000_000_000;

struct Scene {
    limit: RateLimit,
    weights: Weights,
    now: u64,
}

/// What became of the records of some time.
#[derive(Debug, Default)]
struct Told {
    kept: u64,
    capped: u64,
    sum: f64,
    came: u64,
}

impl Scene {
    fn new(per_second: f64, hard_cap: f64) -> Self {
        let limit = RateLimit::new(Draws::new(5, &[]), per_second, hard_cap);
        Self { limit, weights: Weights::new(), now: 1_796_040_000 * SECOND }
    }

    /// Records at an even rate for some seconds.
    fn traffic(&mut self, per_second: u64, seconds: u64) -> Told {
        let mut told = Told { came: per_second * seconds, ..Told::default() };
        for _ in 0..told.came {
            let limited = self.limit.take(1, self.now, &mut self.weights);
            match limited.decision {
                Decision::Keep { weight } => {
                    told.kept += 1;
                    told.sum += self.weights.get(weight).adjusted_count();
                }
                Decision::Drop { reason } => told.capped += u64::from(reason == DropReason::HardCap),
            }
            self.now += SECOND / per_second;
        }
        told
    }
}

/// Traffic below the limit is kept whole, with weight 1.
#[test]
fn below_the_limit() {
    let mut scene = Scene::new(1000.0, 2000.0);
    let told = scene.traffic(900, 5);
    assert_eq!((told.kept, told.sum), (4500, 4500.0), "{told:?}");
}

/// Traffic above it is kept at the limit, without reaching the cap.
#[test]
fn above_the_limit() {
    for per_second in [3000, 10_000, 100_000] {
        let mut scene = Scene::new(1000.0, 2000.0);
        let first = scene.traffic(per_second, 1);
        assert_eq!(first.capped, 0, "{per_second}: {first:?}");
        let told = scene.traffic(per_second, 4);
        let kept = told.kept as f64 / 4.0;
        assert!((900.0..1050.0).contains(&kept), "{per_second}: {told:?}");
        assert_eq!(told.capped, 0, "{per_second}: {told:?}");
        assert!((told.sum / told.came as f64 - 1.0).abs() < 0.1, "{per_second}: {told:?}");
    }
}

/// A hundred times the traffic from one moment to the next does not reach the cap of twice the rate.
#[test]
fn steps_up_and_down() {
    let mut scene = Scene::new(1000.0, 2000.0);
    let _calm = scene.traffic(1000, 2);
    let storm = scene.traffic(100_000, 1);
    assert!(storm.capped == 0 && storm.kept < 2000, "{storm:?}");
    // Afterwards it takes a few windows until all is kept again.
    let after = scene.traffic(500, 2);
    assert!(after.kept < 1000, "{after:?}");
    let calm = scene.traffic(500, 2);
    assert_eq!((calm.kept, calm.sum), (1000, 1000.0), "{calm:?}");
}

/// The hard cap holds, and its drops are counted apart.
#[test]
fn hard_cap() {
    let mut scene = Scene::new(1000.0, 1000.0);
    let told = scene.traffic(50_000, 10);
    // Two windows of room at the beginning.
    assert!(told.kept <= 10_200, "{told:?}");
    assert!(told.capped > 0 && told.kept > 8000, "{told:?}");
}

/// Less than one record in a window.
#[test]
fn small_limits() {
    let mut scene = Scene::new(0.5, 0.5);
    let told = scene.traffic(1000, 100);
    assert!((25..=51).contains(&told.kept), "{told:?}");
    let mut scene = Scene::new(1.0, 2.0);
    let told = scene.traffic(2, 100);
    assert!((50..=201).contains(&told.kept), "{told:?}");
}

/// A clock that stands still gives no more than one window; one that goes back, or ahead for a moment, does no harm.
#[test]
fn odd_clocks() {
    let mut scene = Scene::new(1000.0, 2000.0);
    for _ in 0..10_000 {
        let _limited = scene.limit.take(1, scene.now, &mut scene.weights);
    }
    assert!(scene.limit.drawn < 250, "{}", scene.limit.drawn);
    for odd in [u64::MAX, 0, u64::MAX - 1, 1] {
        let limited = scene.limit.take(10, odd, &mut scene.weights);
        assert!((1..=10).contains(&limited.records));
        let told = scene.traffic(10_000, 5);
        assert!((4000..6000).contains(&told.kept) && told.capped == 0, "{odd}: {told:?}");
    }
}

/// Thresholds are those of the grid, so that their number stays small however long it runs.
#[test]
fn weights_are_few() {
    let mut scene = Scene::new(100.0, 1000.0);
    for step in 0..300u64 {
        let _told = scene.traffic(200 + (step * 7919) % 20_000, 1);
    }
    let few = scene.weights.len();
    assert!((20..700).contains(&few), "{few}");
}
