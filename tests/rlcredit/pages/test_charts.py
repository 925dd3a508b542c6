"""Places of intervals and curves."""

from rlcredit.pages.charts import CHART_RIGHT, StripScale, choose_tick_values, draw_curve_chart
from rlcredit.pages.page_template import load_page_template


def test_a_scale_reaches_as_far_as_its_data_and_holds_zero():
    scale = StripScale.around([2.0, 12.0])
    assert scale.place(0) == 4
    assert scale.place(12) == 96
    assert scale.place(6) == 50
    assert StripScale.around([]).place(0) == 50


def test_ticks_are_round_and_inside():
    assert choose_tick_values(0.38, 0.93) == [0.4, 0.6, 0.8]
    assert choose_tick_values(0, 30) == [0, 10, 20, 30]


def test_a_chart_ends_at_its_last_step_and_names_do_not_overlap():
    flat = [(0, 0.5, 0.4, 0.6), (30, 0.5, 0.4, 0.6)]
    chart = draw_curve_chart({"one": flat, "other": flat})
    first, second = chart.curves
    assert first.line == second.line == f"44.0,116.0 {CHART_RIGHT}.0,116.0"
    assert first.band == "44.0,210.0 430.0,210.0 430.0,22.0 44.0,22.0"
    assert second.label_height - first.label_height == 15


def test_the_template_draws_what_it_is_given(tmp_path):
    path = tmp_path / "page.html"
    path.write_text(
        '{% from "charts.html" import show_curves, show_axis %}'
        '{{ show_curves(chart, "step", "pass") }}{{ show_axis(scale) }}'
    )
    chart, scale = draw_curve_chart({"<b>": [(0, 0.1, 0.1, 0.1), (4, 0.2, 0.2, 0.2)]}), StripScale.around([-4.0, 4.0])
    page = load_page_template(path).render(chart=chart, scale=scale)
    assert ">&lt;b&gt;</text>" in page
    assert 'points="44.0,210.0 430.0,22.0"' in page
    assert [">-2.5<" in page, ">+2.5<" in page, ">0<" in page] == [True] * 3
