"""Function words by language: they tell languages apart, and a query is asked without them.

Each list was written for this package. The English one also holds the words that the local engine leaves out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_LISTS: Mapping[str, str] = {
    "english": """
        a an and are as at be by for from how i in is it of on or that the this to was what when where who with
        do does did has have had will would could should can may might been being were am which whom why whose
        his her he she they them their its my your our me you we us not no if so than then there here into about over
        any some s t d ll m re ve""",
    "german": """
        der die das den dem des ein eine einen einem einer eines und oder aber nicht kein keine ist sind war waren
        wird
        werden wurde hat haben hatte ich du er sie es wir ihr mich mir dich dir uns euch sich mein dein sein unser auf
        in im an am zu zum zur von vom mit bei für über unter aus nach vor um als wie wenn dass ob wo wer was wann
        warum welche welcher welches auch noch nur schon sehr hier dort kann soll muss""",
    "french": """
        le la les un une des du de et ou mais ne pas est sont était été être a ont avait ai as je tu il elle on nous
        vous ils elles me te se mon ma mes ton ta tes son sa ses notre nos votre vos leur leurs ce cet cette ces qui
        que quoi dont où quand comment pourquoi quel quelle dans sur sous pour par avec sans au aux en y plus très d l
        c qu n s j t m à vers puis""",
    "spanish": """
        el la los las un una unos unas de del y o pero no es son era fue ser está están estaba ha han había he yo tú
        él
        ella nosotros ellos ellas me te se mi tu su sus nuestro nuestra este esta estos estas ese esa que quien qué
        cuál cuáles cuándo dónde cómo por para con sin en al a sobre entre muy más también ya hay lo le les después
        hacia""",
    "italian": """
        il lo la i gli le un uno una di del dello della dei degli delle e o ma non è sono era erano essere ha hanno
        aveva ho io tu lui lei noi voi loro mi ti si ci vi mio mia tuo tua suo sua nostro questo questa questi queste
        quello quella che chi cosa quale quando dove come perché per con senza in nel nella nei a al alla ai da dal
        dalla su sul sulla più molto anche già poi verso""",
    "portuguese": """
        o a os as um uma uns umas de do da dos das e ou mas não é são era foi ser está estão tem têm tinha eu tu ele
        ela nós vocês eles elas me te se meu minha seu sua nosso nossa este esta estes estas esse essa isso que quem
        qual quando onde como porque por para com sem em no na nos nas ao à pelo pela mais muito também já depois""",
    "dutch": """
        de het een en of maar niet geen is zijn was waren wordt worden werd heeft hebben had ik jij je hij zij ze wij
        we jullie mij me jou hem haar ons mijn jouw uw dit dat deze die wie wat waar wanneer waarom hoe welke in op
        aan
        te ten ter van met bij voor over onder uit naar om als ook nog al er zeer kan moet""",
    "swedish": """
        en ett den det de och eller men inte är var vara blir blev har hade jag du han hon vi ni de mig dig honom
        henne
        oss er dem min din sin vår denna detta dessa som vem vad var när varför hur vilken vilket i på av till från
        med
        utan för över under efter om så också mycket kan ska måste""",
    "russian": """
        и в во не что он она оно они я ты мы вы на с со как а то все всё так его её их но да к ко у же за бы по только
        мне было были был была есть от меня ещё нет о об из ему мой наш наши нашими потом всё когда где кто какой
        какая какие почему чем до для при
        над под это этот эта эти этого мой твой наш ваш""",
    "turkish": """
        ve veya ama değil bir bu şu o ben sen biz siz onlar mi mı mu mü için ile gibi kadar daha çok en ne nerede kim
        hangi nasıl neden niçin da de ki var yok olan olarak her""",
    "finnish": """
        ja tai mutta ei ole on oli olivat olla minä sinä hän me te he se ne tämä tuo nämä joka mikä mitä missä milloin
        miksi kuka kuinka että jos kun kuin myös vain hyvin""",
}

STOP_WORDS: Mapping[str, frozenset[str]] = {language: frozenset(text.split()) for language, text in _LISTS.items()}
"""Lower-case words as written, with their accents."""
