"""How a fit went stands beside its guarantee."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType

from synth_audit.plugins.generator import TrainingCourse
from synth_audit.report import render_report


def test_a_curve_is_drawn_with_its_numbers(build: ModuleType) -> None:
    course, found = TrainingCourse(), build.passing()
    for step, loss in ((1, 0.75), (2, 0.5)):
        course.step("train", step, 2, loss)
    trained = replace(found.generator, training=course.of_losses())
    assert "Loss in training" not in render_report(found)
    chapter = render_report(replace(found, generator=trained).sealed()).split('id="guarantee"')[1]
    figure = chapter[chapter.index("<figure>") : chapter.index("</figure>")]
    assert "Loss in training" in figure
    assert "<svg" in figure
    assert "0.75" in figure
