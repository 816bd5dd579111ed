"""Whose turn it is."""

from __future__ import annotations

from array import array
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from amicrawl.frontier.places import order_at, order_of, place
from amicrawl.frontier.queue import HostQueue, Rotation

NUMBERS = count(1)


def lane(host: int, *priorities: int) -> HostQueue:
    made = HostQueue(host)
    for priority in priorities or (0,):
        add(made, priority)
    return made


def add(lane: HostQueue, priority: int) -> None:
    number = next(NUMBERS)
    lane.push(place(order_of(priority), number, number))


def taken(rotation: Rotation, now: float) -> list[int]:
    hosts = []
    while (each := rotation.take(now)) is not None:
        hosts.append(each.host)
    return hosts


def test_lanes_come_up_in_the_order_in_which_they_were_filed() -> None:
    rotation = Rotation()
    for host in (3, 1, 2):
        rotation.file(lane(host), 0.0, 0.0)
    assert taken(rotation, 0.0) == [3, 1, 2]


def test_a_lane_filed_again_goes_to_the_end_of_the_line() -> None:
    rotation = Rotation()
    for host in (1, 2, 3):
        rotation.file(lane(host, 0, 0), 0.0, 0.0)
    order = []
    for _ in range(7):
        each = rotation.take(0.0)
        assert each is not None
        order.append(each.host)
        rotation.file(each, 0.0, 0.0)
    assert order == [1, 2, 3, 1, 2, 3, 1]


def test_rows_are_taken_from_both_ends_of_a_lane_each_once() -> None:
    made = HostQueue(1)
    made.follow(array("I", range(10)), lambda number: place(order_of(0), number, number))
    for number in (20, 21):
        made.push(place(order_of(0), number, number))
    far, order = [3, 4, 9, 11], list[int]()
    while made:
        pop = made.pop_far if len(order) in far else made.pop
        order.append(pop(lambda number: place(order_of(0), number, number)))
    assert order[:6] == [0, 1, 2, 9, 8, 3]
    assert sorted(order) == [*range(10), 20, 21]


@given(st.lists(st.one_of(st.integers(-2, 2), st.sampled_from(["pop", "back"])), max_size=60))
def test_rows_of_a_host_come_by_priority_then_by_when_they_were_offered(steps: list[int | str]) -> None:
    lane, places, waiting, gone = HostQueue(1), list[int](), list[int](), list[int]()
    for step in steps:
        if step == "pop":
            if waiting:
                gone.append(lane.pop(places.__getitem__))
                waiting.remove(places[gone[-1]])
                assert all(places[gone[-1]] < other for other in waiting)
        elif step == "back":
            if gone:
                waiting.append(places[gone.pop()])
                lane.push(waiting[-1])
        else:
            number, order = len(places), order_of(float(step))
            places.append(place(order, number, number))
            waiting.append(places[-1])
            lane.append(order, number, number)
        assert len(lane) == len(waiting)
        assert bool(lane) == bool(waiting)
        assert not waiting or lane.first == order_at(min(waiting))


def test_a_run_that_is_taken_from_lets_go_of_what_was_taken() -> None:
    lane = HostQueue(1)
    for number in range(10_000):
        lane.append(order_of(0), number, number)
    assert [lane.pop(int) for _ in range(9_000)] == [*range(9_000)]
    assert len(lane._numbers) < 4_000
    assert [lane.pop(int) for _ in range(1_000)] == [*range(9_000, 10_000)]


def test_greater_priority_at_the_head_comes_first() -> None:
    rotation = Rotation()
    rotation.file(lane(1, 0, -5), 0.0, 0.0)
    rotation.file(lane(2, -1), 0.0, 0.0)
    rotation.file(lane(3, -9, 7), 0.0, 0.0)
    assert taken(rotation, 0.0) == [3, 1, 2]


def test_a_waiting_lane_comes_up_at_its_moment() -> None:
    rotation = Rotation()
    rotation.file(lane(1), 10.0, 0.0)
    assert rotation.take(9.99) is None
    assert rotation.first_moment() == 10.0
    assert taken(rotation, 10.0) == [1]
    assert rotation.first_moment() is None


def test_of_lanes_whose_moment_has_come_the_one_longest_in_line_is_first() -> None:
    rotation = Rotation()
    rotation.file(lane(1), 10.0, 0.0)
    rotation.file(lane(2), 5.0, 0.0)
    rotation.file(lane(3), 0.0, 0.0)
    assert taken(rotation, 10.0) == [1, 2, 3]


def test_a_lane_that_waits_is_sorted_by_the_priority_it_has_when_it_is_ready() -> None:
    rotation = Rotation()
    late, early = lane(1), lane(2)
    rotation.file(early, 1.0, 0.0)
    rotation.file(late, 2.0, 0.0)
    add(late, 10)
    rotation.hurry(late)
    assert rotation.take(1.5) is early
    rotation.file(early, 0.0, 0.0)
    assert taken(rotation, 2.0) == [1, 2]


def test_a_ready_lane_moves_up_with_a_row_of_greater_priority_once() -> None:
    rotation = Rotation()
    first, second = lane(1), lane(2)
    rotation.file(first, 0.0, 0.0)
    rotation.file(second, 0.0, 0.0)
    add(second, 3)
    rotation.hurry(second)
    assert taken(rotation, 0.0) == [2, 1]


def test_a_row_of_lesser_priority_moves_no_lane() -> None:
    rotation = Rotation()
    first, second = lane(1), lane(2)
    rotation.file(first, 0.0, 0.0)
    rotation.file(second, 0.0, 0.0)
    add(second, -3)
    rotation.hurry(second)
    assert taken(rotation, 0.0) == [1, 2]


def test_a_lane_is_filed_in_one_place_only() -> None:
    rotation = Rotation()
    moved = lane(1)
    rotation.file(moved, 100.0, 0.0)
    rotation.file(moved, 0.0, 0.0)
    assert taken(rotation, 0.0) == [1]
    assert taken(rotation, 200.0) == []
    rotation.file(moved, 0.0, 0.0)
    rotation.file(moved, 300.0, 0.0)
    assert rotation.take(299.0) is None
    assert taken(rotation, 300.0) == [1]


def test_a_moment_that_was_put_off_makes_no_lane_ready() -> None:
    rotation = Rotation()
    moved = lane(1)
    rotation.file(moved, 5.0, 0.0)
    rotation.file(moved, 300.0, 0.0)
    assert rotation.take(10.0) is None
    add(moved, 9)
    rotation.hurry(moved)
    assert rotation.take(10.0) is None
    assert taken(rotation, 300.0) == [1]


def test_a_lane_that_was_emptied_meanwhile_is_passed_over() -> None:
    rotation = Rotation()
    moved = lane(1)
    rotation.file(moved, 100.0, 0.0)
    rotation.file(moved, 0.0, 0.0)
    assert rotation.take(0.0) is moved
    moved.pop(place_of=int)
    assert not moved
    assert rotation.take(200.0) is None
    assert rotation.first_moment() is None


def test_lanes_that_are_moved_again_and_again_leave_no_litter() -> None:
    rotation = Rotation()
    for host in range(1, 41):
        rotation.file(lane(host, host % 7), 0.0, 0.0)
    moved = lane(99, 10)
    for step in range(10_000):
        rotation.file(moved, 1e6 - step, 0.0)
        rotation.file(moved, 0.0, 0.0)
    assert len(rotation._ready) + len(rotation._waiting) < 500
    expected = sorted(range(1, 41), key=lambda host: (-(host % 7), host))
    assert taken(rotation, 0.0) == [99, *expected]
    assert taken(rotation, 1e7) == []


def test_a_lane_that_moves_up_again_and_again_leaves_no_litter() -> None:
    rotation = Rotation()
    moved, still = lane(1), lane(2, 5000)
    rotation.file(moved, 0.0, 0.0)
    rotation.file(still, 0.0, 0.0)
    for priority in range(1, 4000):
        add(moved, priority)
        rotation.hurry(moved)
    assert len(rotation._ready) < 500
    assert taken(rotation, 0.0) == [2, 1]
