from pathlib import Path

import pytest

from rlcredit.verification.answer_formats import find_final_answer
from rlcredit.verification.mathematics.notation import write_normal_form
from rlcredit.verification.mathematics.reference_kinds import KINDS
from rlcredit.verification.mathematics.symbolic import judge_symbolically

EQUAL = {
    r"(e, \infty)": [r"\boxed{x > e}", r"\boxed{e < t}"],
    r"(\ln (53), \infty)": [r"\boxed{x > \ln (53)}"],
    r"(n-2) 2^{n}+1": [r"\boxed{1 + (n-2) 2^n}"],
    "All real numbers": [r"\boxed{\text{all real numbers.}}"],
    "3e8": [r"\boxed{3\times10^8\ \mathrm{m\,s^{-1}}}", r"\boxed{3 \times 10^{8} \text{ m/s}}"],
    "7": [r"\boxed{7\ \mathrm{kg\cdot m^2}}"],
    "5": [
        "\\boxed{5\\,}",
        "\\boxed{5\\text{ cm}^2}",
        "\\boxed{5~\\mathrm{cm}}",
        "$\\boxed{5}$",
        "The answer is $5$ cm.",
        "The answer is 5 apples",
        "The answer is **5**",
        "Answer: 5",
        "\\boxed{x = 5}",
        "\\boxed{5.0}",
        "\\boxed{５}",
        "\\boxed{+5}",
        "\\boxed{\\frac{10}{2}}",
        "\\boxed{\\sqrt{25}}",
        "\\boxed{|−5|}",
        "\\boxed{5 units}",
        "\\boxed{5}",
        "The answer is\n\n\\[5\\]",
        "The final answer is: $\\boxed{5}$",
        "\\boxed{ 5 }",
        "\\fbox{5}",
        "\\boxed5",
        "<answer>\n5\n</answer>",
        "\\boxed{500\\%}",
        "the answer is \\(5\\)",
        "The answer is `5`.",
        "\\boxed{\\textbf{5}}",
        "\\boxed{5 \\text{ people}}",
        "\\boxed{5\\ \\text{ways}}",
        "\\boxed{f^{-1}(3) = 5}",
        "\\boxed{\\lim_{x \\to 0} f(x) = 5}",
        "\\boxed{\\|v\\| = 5}",
        "\\boxed{\\sqrt{25} = 5}",
        "\\boxed{Rs. 5}",
        "\\boxed{USD 5}",
        "\\boxed{\\large 5}",
        "\\boxed{\\color{red}{5}}",
        "\\boxed{\\textcolor{red}{5}}",
        "\\boxed{E[X] = 5}",
        "\\boxed{P(X=2) = 5}",
        "\\boxed{a_{n+1} = 5}",
        "\\boxed{[ABC] = 5}",
        "\\boxed{\\frac{AB}{BC} = 5}",
        "\\boxed{\\tan\\theta = 5}",
        "\\boxed{A_{\\text{total}} = 5}",
    ],
    "Evelyn": [
        "\\boxed{Evelyn.}",
        "\\boxed{\\text{Evelyn}}",
        "\\boxed{evelyn}",
        "The answer is Evelyn.",
        "The answer is **Evelyn**.",
        "\\boxed{*Evelyn*}",
        "\\boxed{\\textsc{Evelyn}}",
    ],
    "no": [
        "\\boxed{No}",
        "\\boxed{\\text{no}}",
    ],
    "1,-2": [
        "\\boxed{x=1, x=-2}",
        "\\boxed{-2 \\text{ and } 1}",
        "\\boxed{\\{1,-2\\}}",
        "\\boxed{x=1 or x=-2}",
        "\\boxed{-2,1}",
        "\\boxed{x \\in \\{1,-2\\}}",
    ],
    "(3,4)": [
        "\\boxed{(x,y)=(3,4)}",
        "\\boxed{x=3,y=4}",
        "\\boxed{\\left(3,4\\right)}",
        "\\boxed{y=4, x=3}",
        "\\boxed{(3.0, 4)}",
        "\\boxed{x=3 and y=4}",
        "\\boxed{$x=3$ and $y=4$}",
        "\\boxed{P(3,4)}",
        "\\boxed{(x;y)=(3;4)}",
        "\\boxed{(r, \\theta) = (3,4)}",
        "\\boxed{m=3, b=4}",
    ],
    "x>2": [
        "\\boxed{(2,\\infty)}",
        "\\boxed{2<x}",
        "\\boxed{x \\in (2, \\infty)}",
        "\\boxed{x>2.0}",
        "\\boxed{\\{x \\mid x > 2\\}}",
        "\\boxed{x \\gt 2}",
    ],
    "[2,\\infty)": [
        "\\boxed{x \\ge 2}",
        "\\boxed{x≥2}",
        "\\boxed{[2, +\\infty)}",
        "\\boxed{2 \\le x}",
        "\\boxed{[2,\\infty[}",
    ],
    "(-\\infty,1)\\cup(2,3]": [
        "\\boxed{x<1 \\text{ or } 2<x\\le 3}",
        "\\boxed{(2,3]\\cup(-\\infty,1)}",
        "\\boxed{x \\in (-\\infty, 1) \\cup (2,3]}",
    ],
    "10000": [
        "\\boxed{10\\,000}",
        "\\boxed{10,\\!000}",
        "\\boxed{10{,}000}",
        "\\boxed{10 000}",
        "\\boxed{10^4}",
        "\\boxed{1 \\times 10^{4}}",
        "\\boxed{10,000}",
        "\\boxed{\\$10,000}",
        "\\boxed{10\\text{ thousand}}",
        "\\boxed{0.01\\text{ million}}",
        "\\boxed{10'000}",
        "\\boxed{10_000}",
        "\\boxed{10{\\,}000}",
        "\\boxed{10 \\,000}",
        "\\boxed{10\\thinspace 000}",
    ],
    "\\$18.90": [
        "\\boxed{18.9}",
        "\\boxed{18.90 dollars}",
        "\\boxed{\\$18.90}",
        "The answer is $18.90.",
        "The answer is $\\$18.90$",
        "\\boxed{18.90\\text{ USD}}",
    ],
    "50\\%": [
        "\\boxed{50%}",
        "\\boxed{50}",
        "\\boxed{0.5}",
        "\\boxed{50\\text{ percent}}",
        "\\boxed{\\frac12}",
    ],
    "\\frac{3}{4}": [
        "\\boxed{\\frac34.}",
        "\\boxed{0.75}",
        "\\boxed{3/4}",
        "\\boxed{\\dfrac{3}{4}}",
        "\\boxed{75\\%}",
        "\\boxed{\\frac{-3}{-4}}",
        "\\boxed{\\tfrac{6}{8}}",
    ],
    "1-\\mathrm{i}": [
        "\\boxed{1-i}",
        "\\boxed{-i+1}",
    ],
    "\\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix}": [
        "\\boxed{\\begin{bmatrix}1&2\\\\3&4\\end{bmatrix}}",
        "\\boxed{\\left(\\begin{array}{cc}1 & 2\\\\ 3 & 4\\end{array}\\right)}",
        "\\boxed{A = \\begin{pmatrix}\n1 & 2 \\\\\n3 & 4\n\\end{pmatrix}}",
        "The answer is $\\begin{pmatrix}\n1 & 2 \\\\\n3 & 4\n\\end{pmatrix}$.",
        "\\boxed{\\mathbf{A} = \\begin{pmatrix}1&2\\\\*3&4\\end{pmatrix}}",
        "\\boxed{\\begin{pmatrix}1&2\\cr 3&4\\end{pmatrix}}",
    ],
    "7:30": [
        "\\boxed{7:30}",
    ],
    "3-2": [
        "\\boxed{3–2}",
    ],
    "C": [
        "\\boxed{\\text{C}}",
        "\\boxed{(C)}",
        "\\boxed{\\mathrm{C}}",
        "The answer is C.",
        "Answer: (C) 5",
        "The answer is **C**",
        "\\boxed{Option C}",
        "\\boxed{C. A rectangle}",
        "\\boxed{c}",
        "\\boxed{\\textbf{C}}",
        "\\boxed{[C]}",
        "\\boxed{\\text{Option } C}",
        "\\boxed{C) 5}",
    ],
    "m": [
        "\\boxed{m}",
    ],
    "5m": [
        "\\boxed{5\\mathrm{m}}",
    ],
    "1.5": [
        "\\boxed{1 1/2}",
        "\\boxed{1\\frac12}",
        "\\boxed{1½}",
        "\\boxed{3/2}",
        "\\boxed{1\\ 1/2}",
    ],
    "2^{99}": [
        "\\boxed{633825300114114700748351602688}",
    ],
    "\\{1,2\\}": [
        "\\boxed{\\{2,1\\}}",
        "\\boxed{1,2}",
        "\\boxed{\\{1,2\\}}",
        "\\boxed{A \\cup B = \\{1,2\\}}",
    ],
    "x^2+2x+1": [
        "\\boxed{x²+2x+1}",
        "\\boxed{(x+1)^2}",
        "\\boxed{x**2+2*x+1}",
        "\\boxed{f(x)=x^2+2x+1}",
    ],
    "y = 2x+1": [
        "\\boxed{y=2x+1}",
        "\\boxed{2x+1}",
        "\\boxed{2x-y+1=0}",
        "\\boxed{f(x)=2x+1}",
        "\\boxed{y(x) = 2x+1}",
    ],
    "\\text{all real numbers}": [
        "\\boxed{\\mathbb{R}}",
        "\\boxed{(-\\infty,\\infty)}",
        "\\boxed{All real numbers.}",
    ],
    "\\emptyset": [
        "\\boxed{\\{\\}}",
        "\\boxed{∅}",
        "\\boxed{\\varnothing}",
    ],
    "x \\equiv 3 \\pmod 7": [
        "\\boxed{3 \\pmod{7}}",
        "\\boxed{x \\equiv 10 \\pmod 7}",
        "\\boxed{x\\equiv 3 (\\bmod 7)}",
        "\\boxed{x ≡ 3 \\pmod 7}",
    ],
    "2023-01-15": [
        "\\boxed{2023–01–15}",
        "The answer is 2023-01-15.",
    ],
    "293": [
        "Answer: m+n = 256+37 = 293",
        "The final answer is $m + n = 293$.",
        "\\boxed{|AB| = 293}",
        "\\boxed{12 \\cdot 20 + 53 = 293}",
    ],
    "1011_2": [
        "\\boxed{1011_{2}}",
        "\\boxed{1011_{\\text{two}}}",
        "\\boxed{x = 1011_2}",
    ],
    "\\frac{1}{2^{99}}": [
        "\\boxed{2^{-99}}",
        "\\boxed{\\frac{2}{2^{100}}}",
    ],
    "0.\\overline{3}": [
        "\\boxed{\\frac13}",
        "\\boxed{0.(3)}",
        "\\boxed{0.333\\ldots}",
        "\\boxed{0.333…}",
        "\\boxed{0.{\\overline{3}}}",
    ],
    "f(x)=\\begin{cases}1 & x>0 \\\\ 2 & x\\le 0\\end{cases}": [
        "\\boxed{f(x)=\\left\\{\\begin{array}{ll}1 & x>0 \\\\ 2 & 0 \\ge x\\end{array}\\right.}",
    ],
    "\\frac{d x}{d t}=k x-a": [
        "\\boxed{k x - a = \\frac{dx}{dt}}",
    ],
    "x+y>2": [
        "\\boxed{-x-y<-2}",
        "\\boxed{2 < y + x}",
    ],
    "|x|": [
        "\\boxed{\\sqrt{x^2}}",
    ],
    "12\\text{ cm}": [
        "\\boxed{12}",
        "\\boxed{12 centimeters}",
        "\\boxed{12\\,\\mathrm{cm}}",
    ],
    "9 (apples)": [
        "\\boxed{9 apples}",
        "#### 9",
    ],
    "3 \\pm \\sqrt{2}": [
        "\\boxed{3-\\sqrt2, 3+\\sqrt2}",
        "\\boxed{x = 3 \\pm \\sqrt{2}}",
    ],
    "0.5": [
        "\\boxed{1\\over2}",
        "\\boxed{{1\\over 2}}",
        "\\boxed{\\nicefrac{1}{2}}",
        "\\boxed{¹⁄₂}",
        "\\boxed{2^(-1)}",
    ],
    "-\\frac{3}{2}": [
        "\\boxed{{-}\\frac{3}{2}}",
        "\\boxed{-1½}",
        "\\boxed{-1 1/2}",
        "\\boxed{\\frac{3}{-2}}",
    ],
    "\\frac{1}{7}": [
        "\\boxed{0.\\overline{142857}}",
        "\\boxed{0.\\dot{1}4285\\dot{7}}",
    ],
    "90^\\circ": [
        "\\boxed{90^o}",
        "\\boxed{{90}^{\\circ}}",
        "\\boxed{90{}^{\\circ}}",
        "\\boxed{90\\text{°}}",
        "\\boxed{\\measuredangle ABC = 90^\\circ}",
        "\\boxed{m\\angle ABC = 90^\\circ}",
        "\\boxed{\\frac{\\pi}{2}}",
        "\\boxed{\\frac{\\pi}{2}\\text{ radians}}",
    ],
    "€5": [
        "\\boxed{EUR 5}",
        "\\boxed{\\euro 5}",
        "\\boxed{5 euros}",
    ],
    "£5": [
        "\\boxed{\\pounds5}",
        "\\boxed{GBP 5}",
        "\\boxed{5 pounds}",
    ],
    "12\\pi": [
        "\\boxed{12𝜋}",
        "\\boxed{12\\pi \\text{ cm}^2}",
        "\\boxed{12\\pi\\ \\text{in}^3}",
        "\\boxed{12π}",
    ],
    "(1,2)": [
        "\\boxed{]1,2[}",
        "\\boxed{x \\in (1,2)}",
    ],
    "2\\sqrt{3}": [
        "\\boxed{2\\sqrt{3} \\text{ cm}}",
        "\\boxed{2\\sqrt{3}\\text{ square units}}",
        "\\boxed{2\\sqrt{3} units}",
        "\\boxed{\\sqrt{12}=2\\sqrt{3}}",
        "\\boxed{2*3^(1/2)}",
    ],
    "\\left(3,\\frac{\\pi}{2}\\right)": [
        "\\boxed{(3, 90^\\circ)}",
        "\\boxed{r=3, \\theta=\\frac{\\pi}{2}}",
    ],
    "1000": [
        "\\boxed{1000 \\frac{\\text{m}}{\\text{s}}}",
    ],
    "4.5e33": [
        "\\boxed{4.5\\times 10^{33}\\frac{\\mathrm{erg}}{\\mathrm{s}}}",
        "\\boxed{4.5 X 10^33 erg/s}",
        "\\boxed{4.5 \\times 10^{33} \\mathrm{erg} / \\mathrm{s}}",
    ],
    "ice cream": [
        "\\boxed{ice-cream}",
        "\\boxed{Ice Cream}",
        "\\boxed{the ice cream}",
    ],
    "St. Louis": [
        "\\boxed{St Louis}",
        "\\boxed{St. Louis}",
    ],
    "[1,2)": [
        "\\boxed{x \\ge 1 \\text{ and } x < 2}",
        "\\boxed{[1;2)}",
        "\\boxed{[1,2[}",
    ],
    "\\mathbb{R}\\setminus\\{2\\}": [
        "\\boxed{\\text{all real numbers except }2}",
        "\\boxed{x\\in\\mathbb{R}, x\\ne 2}",
        "\\boxed{\\R \\setminus \\{2\\}}",
        "\\boxed{ℝ∖{2}}",
        "\\boxed{x \\ne 2}",
    ],
    "x+1": [
        "\\boxed{(f \\circ g)(x) = x+1}",
        "\\boxed{f(g(x)) = x+1}",
        "\\boxed{\\mathbf{v}\\cdot\\mathbf{w} = x+1}",
    ],
    "\\binom{5}{2}": [
        "\\boxed{\\frac{5!}{2!3!}}",
    ],
    "\\log_2 3": [
        "\\boxed{\\ln 3/\\ln 2}",
        "\\boxed{\\frac{\\ln 3}{\\ln 2}}",
    ],
}
"""Reference: completions that answer the same."""

DIFFERENT = {
    "5": [
        "\\boxed{5 or 6}",
        "\\boxed{5, 6}",
        "\\boxed{5 / 6}",
        "\\boxed{5|6}",
        "\\boxed{5 \\text{ or } 6}",
        "\\boxed{5 \\vee 6}",
        "\\boxed{5 \\quad 6}",
        "\\boxed{5 \\\\ 6}",
        "\\boxed{5;6}",
        "\\boxed{5\\to6}",
        "\\boxed{5 \\approx 6}",
        "\\boxed{\\neq 5}",
        "\\boxed{5\\text{ not }}",
        "\\boxed{5²}",
        "\\boxed{5^2}",
        "\\boxed{5**4}",
        "\\boxed{5$6}",
        "\\boxed{5\\choose 4}",
        "\\boxed{5_6}",
        "\\boxed{>5}",
        "\\boxed{\\ge 5}",
        "\\boxed{5...}",
        "\\boxed{\\sim 5}",
        "\\boxed{\\approx 5}",
        "\\boxed{5?}",
        "\\boxed{5 \\pm 1}",
        "\\boxed{\\pm 5}",
        "\\boxed{5 ± 0.5}",
        "\\boxed{(5)(6)}",
        "\\boxed{5(6)}",
        "\\boxed{5\\{6\\}}",
        "\\boxed{\\{5,6\\}}",
        "\\boxed{(5,6)}",
        "\\boxed{[5,6]}",
        "\\boxed{5\\cup6}",
        "\\boxed{5 & 6}",
        "\\boxed{5\\text{ but maybe } 6}",
        "\\boxed{5 lakh}",
        "\\boxed{5 crore}",
        "\\boxed{5 percent}",
        "\\boxed{5\\text{percent}}",
        "\\boxed{5 twelfths}",
        "\\boxed{5 bn}",
        "\\boxed{5k}",
        "\\boxed{5i}",
        "\\boxed{5\\mathrm{i}}",
        "\\boxed{5e}",
        "\\boxed{5\\mathrm{e}}",
        "\\boxed{5 \\mathrm{\\pi}}",
        "\\boxed{5!}",
        "\\boxed{5'}",
        "\\boxed{\\bar{5}}",
        "\\boxed{\\overline{5}}",
        "\\boxed{-5}",
        "\\boxed{.5}",
        "\\boxed{5,5}",
        "\\boxed{5 5}",
        "The answer is not 5",
        "The answer is $5$ or $6$",
        "The answer is 5 or 6.",
        "\\boxed{\\text{not }5}",
        "\\boxed{\\neg 5}",
        "\\boxed{\\cancel{5}}",
        "\\boxed{\\sout{5}}",
        "\\boxed{\\phantom{5}}",
        "\\boxed{5\\hspace{1cm}6}",
        "\\boxed{5 \\mid 6}",
        "\\boxed{5\\Rightarrow 6}",
        "\\boxed{6, 5}",
        "\\boxed{six or 5}",
        "\\boxed{5 \\text{ is wrong}}",
        "\\boxed{5 (or 6)}",
        "\\boxed{5 (6)}",
        "\\boxed{5 [6]}",
        "\\boxed{5 \\text{ or six}}",
        "\\boxed{5 apples or 6}",
        "\\boxed{5\\text{ or }}",
        "\\boxed{\\int_0^5 1 dx}",
        "\\boxed{\\max(5,4)}",
        "\\boxed{5 \\bmod 7}",
        "\\boxed{5 = 6}",
        "\\boxed{6 = 5}",
        "\\boxed{5 \\ne 6}",
        "\\boxed{x \\ne 5}",
        "\\boxed{x > 5}",
        "\\boxed{5<6}",
        "\\boxed{5 basis points}",
        "\\boxed{~5}",
        "The answer is 5 vs. 6.",
        "\\boxed{5 cf. 6}",
        "\\boxed{5 viz 6}",
        "\\boxed{x = x + 5}",
    ],
    "34": [
        "\\boxed{3 4}",
        "\\boxed{3$4}",
        "\\boxed{3\\ 4}",
        "\\boxed{3\\text{ }4}",
        "\\boxed{3\u00004}",
    ],
    "7": [
        "\\boxed{3 4}",
        "\\boxed{3$4}",
    ],
    "no": [
        "\\boxed{on}",
        "\\boxed{No way}",
        "\\boxed{not no}",
    ],
    "Paris": [
        "\\boxed{Pairs}",
    ],
    "1,-2": [
        "\\boxed{1}",
        "\\boxed{1,2}",
        "\\boxed{1,-2,3}",
        "\\boxed{(1,-2)}",
        "\\boxed{1,1}",
        "\\boxed{x=-2, y=1}",
    ],
    "1-\\mathrm{i}": [
        "\\boxed{1}",
        "\\boxed{1+i}",
    ],
    "\\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix}": [
        "\\boxed{\\begin{vmatrix}1&2\\\\3&4\\end{vmatrix}}",
        "\\boxed{\\begin{pmatrix}1&3\\\\2&4\\end{pmatrix}}",
        "\\boxed{2A = \\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}}",
    ],
    "7:30": [
        "\\boxed{7/30}",
        "\\boxed{8:30}",
    ],
    "3-2": [
        "\\boxed{1}",
    ],
    "C": [
        "\\boxed{A\\text{ or C}}",
        "\\boxed{C or D}",
        "\\boxed{not C}",
        "\\boxed{C, D}",
        "\\boxed{CD}",
        "\\boxed{C. D}",
        "\\boxed{A, C}",
        "\\boxed{(C}",
        "\\boxed{c. d}",
        "\\boxed{(C) d)}",
        "\\boxed{C: b}",
        "\\boxed{C. a}",
        "\\boxed{C.orD}",
    ],
    "5m": [
        "\\boxed{5}",
    ],
    "5.5": [
        "\\boxed{1 1/2}",
    ],
    "293": [
        "\\boxed{256+38 = 293}",
        "\\boxed{293 = 293}",
        "\\boxed{m+n = 256+38 = 293}",
        "\\boxed{x^2 = 293}",
    ],
    "1011_2": [
        "\\boxed{1011}",
        "\\boxed{11}",
        "\\boxed{1011_3}",
    ],
    "\\frac{1}{2^{99}}": [
        "\\boxed{2^{-98}}",
        "\\boxed{0}",
    ],
    "0.\\overline{3}": [
        "\\boxed{0.3}",
        "\\boxed{0}",
        "\\boxed{0.333}",
    ],
    "\\frac{d x}{d t}=k x-a": [
        "\\boxed{9173 or \\frac{d x}{d t}=k x-a}",
        "\\boxed{\\frac{dx}{dt} = kx + a}",
    ],
    "x+y>2": [
        "\\boxed{x+y<2}",
        "\\boxed{x+y \\ge 2}",
    ],
    "|x|": [
        "\\boxed{x}",
    ],
    "12\\text{ cm}": [
        "\\boxed{12 m}",
        "\\boxed{12\\text{ inches}}",
        "\\boxed{12\\text{ cm}^2}",
    ],
    "3 \\pm \\sqrt{2}": [
        "\\boxed{3+\\sqrt{2}}",
    ],
    "(3,4)": [
        "\\boxed{x=3, x=4}",
        "\\boxed{(y,x)=(3,4)}",
        "\\boxed{x=4, y=3}",
    ],
    "\\{1,2\\}": [
        "\\boxed{x=1, y=2}",
    ],
    "x+1": [
        "\\boxed{x = x+1}",
    ],
    "(-\\infty,1)\\cup(2,\\infty)": [
        "\\boxed{x<1 or y>2}",
        "\\boxed{x<1 \\text{ and } x>2}",
    ],
    "[1,2)": [
        "\\boxed{x \\ge 1 \\text{ or } x < 2}",
        "\\boxed{x \\ge 1 \\text{ and } y < 2}",
        "\\boxed{x \\ge 2 \\text{ and } x < 1}",
    ],
    "90^\\circ": [
        "\\boxed{90\\text{ radians}}",
        "\\boxed{\\pi}",
        "\\boxed{\\frac{\\pi}{3}}",
    ],
    "2\\sqrt{3}": [
        "\\boxed{2\\sqrt{3}\\text{ million}}",
        "\\boxed{2\\sqrt{3}\\%}",
        "\\boxed{2\\sqrt{3}\\text{ or }4}",
    ],
    "y = 2x+1": [
        "\\boxed{f(x)=2x-1}",
        "\\boxed{z=2x+1}",
    ],
    "ice cream": [
        "\\boxed{icecream}",
        "\\boxed{cream ice}",
    ],
}
"""Reference: completions that answer something else, more than one thing, or nothing."""


def judged(reference, completion):
    answer = find_final_answer(completion)
    return bool(answer) and judge_symbolically(answer, reference) == 1.0


@pytest.mark.parametrize("reference", EQUAL)
def test_what_answers_the_same_is_equal(reference):
    assert [completion for completion in EQUAL[reference] if not judged(reference, completion)] == []


@pytest.mark.parametrize("reference", DIFFERENT)
def test_what_answers_something_else_is_not(reference):
    assert [completion for completion in DIFFERENT[reference] if judged(reference, completion)] == []


@pytest.mark.parametrize(
    ("reference", "kind"),
    [
        ("C", "option letter"),
        ("(B)", "option letter"),
        ("2023-01-15", "date, time, score, ratio or range"),
        ("7:30", "date, time, score, ratio or range"),
        ("1011_2", "number in another base"),
        (r"x \equiv 3 \pmod{7}", "congruence"),
        (r"\begin{pmatrix} 1 \\\\ 2 \end{pmatrix}", "matrix or function by cases"),
        (r"1, 2, \ldots, n", "sequence that goes on"),
        ("y = 2x + 1", "equation"),
        ("x > 2", "interval, inequality or union"),
        (r"[2, \infty)", "interval, inequality or union"),
        (r"\{1, 2\}", "set"),
        ("(3, 4)", "tuple"),
        (r"\$36", "number, or value with a unit"),
        (r"\frac{3}{4}", "number, or value with a unit"),
        (r"\text{Evelyn}", "text"),
        ("no", "text"),
        ("1, -2", "list"),
        ("x + y > 2", "inequality of several names"),
        (r"2\sqrt{3}", "any other value"),
        ("xy", "any other value"),
    ],
)
def test_every_kind_of_reference_is_known(reference, kind):
    assert next(each.name for each in KINDS if each.describes(write_normal_form(reference))) == kind


def test_the_page_has_a_row_for_each_kind_in_their_order():
    page = Path("docs/reference/verification.md").read_text(encoding="utf-8")
    rows = [row.split("|")[1].partition(":")[0].strip() for row in page.splitlines() if row.startswith("| ")]
    assert rows[rows.index("option letter") :] == [kind.name for kind in KINDS]


def test_the_kinds_above_are_all_kinds():
    tried = {mark.args[1][place][1] for mark in test_every_kind_of_reference_is_known.pytestmark for place in range(21)}
    assert tried == {kind.name for kind in KINDS}
