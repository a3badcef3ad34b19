//! Tasks are dispatched once each, in order, and not after their deadline.

use rust_hotpath::conductor::{Conductor, Lane, Outcome};
use rust_hotpath::context::Context;
use rust_hotpath::registry::{Registry, INPUT};
use rust_hotpath::workload::Traffic;

fn first(input: &[u8; INPUT]) -> u64 {
    u64::from(input[0])
}

fn last(input: &[u8; INPUT]) -> u64 {
    u64::from(input[INPUT - 1])
}

fn numbered(number: u8) -> [u8; INPUT] {
    let mut input = [0; INPUT];
    input[0] = number;
    input[INPUT - 1] = !number;
    input
}

fn registry() -> Registry {
    let mut registry = Registry::default();
    registry.register("first", first);
    registry.register("last", last);
    registry
}

#[test]
fn a_lane_is_served_in_order_and_after_the_more_urgent_ones() {
    let mut conductor = Conductor::new(registry());
    let context = Context::new("r", 100);
    let handler = conductor.registry().resolve("first").unwrap();
    let lanes = [
        Lane::Background,
        Lane::Normal,
        Lane::Interactive,
        Lane::Normal,
        Lane::Interactive,
    ];
    for (number, lane) in (0..).zip(lanes) {
        assert_eq!(
            conductor.submit(&context, lane, handler, &numbered(number)),
            u64::from(number)
        );
    }
    assert_eq!(conductor.waiting(), 5);
    for number in [2, 4, 1, 3, 0] {
        assert_eq!(conductor.dispatch(), Some((number, Outcome::Done(number))));
    }
    assert_eq!(conductor.dispatch(), None);
    assert_eq!((conductor.waiting(), conductor.clock()), (0, 5));
}

#[test]
fn each_task_goes_to_its_own_handler_with_its_own_input() {
    let mut conductor = Conductor::new(registry());
    let context = Context::new("r", u64::MAX);
    let handlers = ["first", "last"].map(|name| conductor.registry().resolve(name).unwrap());
    let (mut sent, mut done) = (0_u8, 0_u8);
    // The backlog grows and shrinks again and again, so places are used in a new order each time.
    for burst in [1, 7, 2, 90, 3, 0, 64, 1] {
        for _ in 0..burst {
            let handler = handlers[usize::from(sent % 2)];
            conductor.submit(&context, Lane::Normal, handler, &numbered(sent));
            sent += 1;
        }
        for _ in 0..=burst / 2 {
            let Some((id, outcome)) = conductor.dispatch() else {
                break;
            };
            assert_eq!(id, u64::from(done));
            let expected = if done % 2 == 0 { done } else { !done };
            assert_eq!(outcome, Outcome::Done(u64::from(expected)), "task {id}");
            done += 1;
        }
    }
    assert_eq!(conductor.waiting(), usize::from(sent - done));
}

#[test]
fn a_task_begins_at_its_deadline_at_the_latest() {
    let mut conductor = Conductor::new(registry());
    let context = Context::new("r", 2);
    let handler = conductor.registry().resolve("first").unwrap();
    for number in 0..3 {
        conductor.submit(&context, Lane::Normal, handler, &numbered(number));
    }
    assert_eq!(conductor.dispatch(), Some((0, Outcome::Done(0))));
    assert_eq!(conductor.dispatch(), Some((1, Outcome::Done(1))));
    assert_eq!(conductor.dispatch(), Some((2, Outcome::Expired)));
}

#[test]
fn a_handler_of_the_same_name_replaces_the_one_before() {
    let mut registry = registry();
    let id = registry.resolve("first").unwrap();
    assert_eq!(registry.register("first", last), id);
    assert_eq!(registry.handler(id)(&numbered(1)), 254);
    assert_eq!(registry.resolve("third"), None);
}

#[test]
fn two_runs_of_the_workload_are_alike() {
    let values = || {
        let mut traffic = Traffic::new();
        (0..2_000).map(|_| traffic.step()).collect::<Vec<u64>>()
    };
    assert_eq!(values(), values());
}
