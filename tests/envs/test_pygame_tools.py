"""What renderers share of pygame."""

import pytest

from ludus.envs.pygame_tools import Font, pygame


@pytest.mark.parametrize("bold", [False, True])
def test_a_font_outlives_that_somebody_quits_pygame(bold: bool) -> None:
    font = Font(24, bold=bold)
    before = pygame.image.tobytes(font.render("42 $", (1, 2, 3)), "RGBA"), font.width("42 $"), font.height
    for ask in (lambda: font.render("42 $", (1, 2, 3)), lambda: font.width("42 $"), lambda: font.height):
        pygame.quit()
        ask()
    after = pygame.image.tobytes(font.render("42 $", (1, 2, 3)), "RGBA"), font.width("42 $"), font.height
    assert after == before
