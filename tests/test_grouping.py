"""What tests share is made once, though they run in several processes."""

from __future__ import annotations

import pytest


@pytest.mark.xdist_group("together")
def test_tests_of_a_group_are_dealt_to_one_process(request):
    if not request.config.getoption("loadgroup", False):
        pytest.skip("all tests run in this process")
    assert request.node.nodeid.rpartition("@")[2] == "together"
