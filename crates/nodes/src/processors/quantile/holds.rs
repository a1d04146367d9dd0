//! The inputs of open windows, held until every window they went into has been sent and acknowledged.

use std::collections::HashMap;

use otel_arrow_dfe_otap::accessory::slots::{Key, State};
use otel_arrow_dfe_otap::pdata::OtapPdata;

use super::measure::OpenWindow;

/// An input, without its payload, whose outcome somebody waits for.
struct Held {
    input: OtapPdata,
    claims: usize,
}

#[derive(Default)]
struct Window {
    inputs: Vec<Key>,
    /// Count windows: observations in the window that is open now.
    filled: u64,
}

/// Which inputs wait for which windows, and for how many outputs.
pub(super) struct Holds {
    inputs: State<Held>,
    windows: HashMap<OpenWindow, Window>,
}

impl Holds {
    /// Room for `max` inputs.
    pub(super) fn new(max: usize) -> Self {
        Self { inputs: State::new(max), windows: HashMap::new() }
    }

    /// Whether another input can be held.
    pub(super) fn has_room(&self) -> bool {
        self.inputs.has_capacity()
    }

    /// Inputs held now.
    pub(super) fn len(&self) -> usize {
        self.inputs.len()
    }

    /// Holds an input, with one claim of its own that [`Holds::release`] takes back once its windows are known; gives it
    /// back if there is no room.
    pub(super) fn hold(&mut self, input: OtapPdata) -> Result<Key, Box<OtapPdata>> {
        self.inputs.allocate_with_data(Held { input, claims: 1 }).map_err(|held| Box::new(held.input))
    }

    fn claim(&mut self, input: Key) {
        if let Some(held) = self.inputs.get_mut(input) {
            held.claims += 1;
        }
    }

    /// Notes that observations of `input` went into a tumbling window.
    pub(super) fn window_takes(&mut self, window: OpenWindow, input: Key) {
        let inputs = &mut self.windows.entry(window).or_default().inputs;
        if inputs.last() != Some(&input) {
            inputs.push(input);
            self.claim(input);
        }
    }

    /// Notes that `observations` of `input` went into the count windows, of `size` each, of a series. Gives the inputs
    /// of those that are full now.
    pub(super) fn count_takes(
        &mut self,
        window: OpenWindow,
        input: Option<Key>,
        observations: u64,
        size: u64,
    ) -> Vec<Key> {
        if observations == 0 {
            return Vec::new();
        }
        let entry = self.windows.entry(window.clone()).or_default();
        let total = entry.filled + observations;
        let mut done = Vec::new();
        if total >= size {
            done = std::mem::take(&mut entry.inputs);
        }
        entry.filled = total % size;
        let (filled, closed) = (entry.filled, total >= size);
        if let Some(input) = input {
            if closed {
                done.push(input);
                self.claim(input);
            }
            if filled > 0 {
                self.window_takes(window.clone(), input);
            }
        }
        if filled == 0 {
            let _ = self.windows.remove(&window);
        }
        done
    }

    /// Takes the inputs of a window that has closed before it was full, or of a tumbling window.
    pub(super) fn close(&mut self, window: &OpenWindow) -> Vec<Key> {
        self.windows.remove(window).map(|window| window.inputs).unwrap_or_default()
    }

    /// The inputs with one more claim on each: for one more output that they went into.
    pub(super) fn share(&mut self, inputs: &[Key]) -> Vec<Key> {
        inputs.iter().for_each(|input| self.claim(*input));
        inputs.to_vec()
    }

    /// Takes one claim back; gives the input if that was the last.
    pub(super) fn release(&mut self, input: Key) -> Option<OtapPdata> {
        let done = self.inputs.mutate(input, |held| {
            held.claims = held.claims.saturating_sub(1);
            held.claims > 0
        });
        done.map(|held| held.input)
    }

    /// Takes all inputs: the node ends, and their outcome will not be known.
    pub(super) fn take_all(&mut self) -> Vec<OtapPdata> {
        self.windows.clear();
        let mut all = Vec::new();
        self.inputs.drain(|held| all.push(held.input));
        all
    }

    /// Takes an input whatever claims there are: it is refused.
    pub(super) fn fail(&mut self, input: Key) -> Option<OtapPdata> {
        self.inputs.take(input).map(|held| held.input)
    }
}

#[cfg(test)]
mod tests {
    use catchment_quantile::window::SeriesKey;

    use otel_arrow_dfe_config::SignalType;
    use otel_arrow_dfe_otap::pdata::Context;
    use otel_arrow_dfe_pdata_codec::OtapPayload;

    use super::*;

    fn hold(holds: &mut Holds) -> Key {
        let input = OtapPdata::new(Context::default(), OtapPayload::empty(SignalType::Logs));
        let Ok(key) = holds.hold(input) else { panic!("room") };
        key
    }

    fn tumbling(start_ns: i64) -> OpenWindow {
        OpenWindow::Tumbling { measure: 0, start_ns }
    }

    /// An input of two windows is released by the second acknowledgement, not by the first.
    #[test]
    fn an_input_waits_for_all_its_windows() {
        let mut holds = Holds::new(4);
        let input = hold(&mut holds);
        for start in [0, 10, 10] {
            holds.window_takes(tumbling(start), input);
        }
        assert!(holds.release(input).is_none(), "two windows claim it");
        for key in holds.close(&tumbling(0)) {
            assert!(holds.release(key).is_none());
        }
        let done: Vec<_> = holds.close(&tumbling(10)).into_iter().filter_map(|key| holds.release(key)).collect();
        assert_eq!((done.len(), holds.len()), (1, 0));
        assert!(holds.release(input).is_none(), "a second outcome changes nothing");
    }

    /// What comes out in several outputs is released by the last.
    #[test]
    fn an_input_waits_for_all_outputs_of_its_window() {
        let mut holds = Holds::new(4);
        let input = hold(&mut holds);
        holds.window_takes(tumbling(0), input);
        assert!(holds.release(input).is_none());
        let inputs = holds.close(&tumbling(0));
        let first = holds.share(&inputs);
        assert_eq!((first.as_slice(), inputs.as_slice()), (&[input][..], &[input][..]));
        assert!(holds.release(input).is_none());
        assert!(holds.release(input).is_some());
    }

    /// Count windows: an input that fills two windows and begins a third belongs to both.
    #[test]
    fn count_windows_claim_the_inputs_that_filled_them() {
        let mut holds = Holds::new(4);
        let window = OpenWindow::Count { measure: 0, series: SeriesKey::Series(Default::default()) };
        let (a, b) = (hold(&mut holds), hold(&mut holds));
        assert!(holds.count_takes(window.clone(), Some(a), 60, 100).is_empty());
        assert_eq!(holds.count_takes(window.clone(), Some(b), 250, 100), [a, b]);
        assert_eq!(holds.close(&window), [b], "the begun window");
        let c = hold(&mut holds);
        assert_eq!(holds.count_takes(window.clone(), Some(c), 200, 100), [c]);
        assert!(holds.close(&window).is_empty(), "nothing begun");
    }
}
